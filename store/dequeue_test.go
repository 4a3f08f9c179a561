package store_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func TestDequeueCheck(t *testing.T) {
	t.Parallel()
	for limit, good := range map[int]bool{-1: false, 0: false, 1: true, 10: true, 11: false} {
		d := store.Dequeue{Limit: limit}
		if err := d.Check(10); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "limit") {
			t.Errorf("Check of Limit %d: %v, want it good: %v", limit, err, good)
		}
		d.Reread = true
		check.NoError(t, d.Check(10), "Check of asking again with Limit %d", limit)
	}
}

// A claim changes the token and the times, and keeps the rest.
func TestDequeueClaim(t *testing.T) {
	t.Parallel()
	waits := store.Record{
		ID: store.ID{1}, Token: store.Token{State: store.Pending, Attempt: 7, Owner: 1}, Due: -time.Second, Expire: time.Hour,
		Operation: "op", Scope: "scope", Key: "key", Fingerprint: []byte("print"), Priority: -4, Tainted: true,
		Input: []byte("input"), Outcome: []byte("progress"),
	}
	d := store.Dequeue{Owner: 2, Lease: time.Minute}
	want := store.Change{If: waits.Token, IfDue: true, To: waits}
	want.To.Token = store.Token{State: store.InProgress, Attempt: 8, Owner: 2}
	want.To.Due, want.To.Expire, want.To.Input, want.To.Outcome = time.Minute, 0, nil, nil
	if got := d.Claim(waits); !reflect.DeepEqual(got, want) {
		t.Errorf("Claim = %+v, want %+v", got, want)
	}
}
