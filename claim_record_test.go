package semel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestAttemptHasTheClaimedRecord: the attempt has exactly the current record,
// whether the record was new, had an input, or was taken over with a taint.
func TestAttemptHasTheClaimedRecord(t *testing.T) {
	eachInBubble(t, map[string]semel.OperationOptions[string]{
		"without an input":                {Policy: semel.AtLeastOnce()},
		"with an input":                   {Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}},
		"with less to run than its lease": {Policy: semel.AtLeastOnce(), Lease: time.Minute, MaxRun: time.Second},
		"with a time in its key": {
			Policy: semel.AtLeastOnce(), KeyTime: func(string) (time.Time, bool) { return time.Now(), true },
		},
	}, func(t *testing.T, o semel.OperationOptions[string]) {
		call := plain("op", o).Call(semel.ScopeOf("a", "b"), "k", "in")
		p, mem := solo(t, semel.Options{})
		a := begin(t, p, call)
		first := a.Record()
		wantClaimed(t, first, wantState(t, mem, call, store.InProgress))
		check.Must(a.End("v", nil))(t)
		wantClaimed(t, a.Record(), first) // as it was claimed, even after its end

		p, mem = solo(t, semel.Options{})
		first.Due = time.Second
		check.Must(mem.Swap(t.Context(), []store.Change{{To: first}}))(t)
		pass(time.Minute)
		a = begin(t, p, call)
		if second := a.Record(); second.Attempt != 2 || !second.Tainted {
			t.Errorf("taken over it is %+v, want the second attempt, tainted", second)
		}
		wantClaimed(t, a.Record(), wantState(t, mem, call, store.InProgress))
		a.Abandon()
	})
}

func wantClaimed(t *testing.T, got, want store.Record) {
	t.Helper()
	want.Age = 0 // a claim does not read it
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the record of the attempt (-current +attempt):\n%s", diff)
	}
}
