package etcd_test

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/etcd"
)

// TestTakeoverWaitsForTheSkew: the clock of the second process is ahead by more than the
// lease. Within the Skew it does not take over. Otherwise it does, and then the first process
// cannot end the attempt.
func TestTakeoverWaitsForTheSkew(t *testing.T) {
	t.Parallel()
	const lease, ahead = time.Minute, 2 * time.Minute
	client := check.Must(realtest.NewEtcdClient(realtest.Etcd(t).URL()))(t)
	t.Cleanup(func() { client.Close() })
	for _, c := range []struct {
		skew, ahead time.Duration
		takes       bool
	}{
		{0, ahead, true}, {lease / 2, ahead, true}, {ahead, ahead, false}, {ahead, lease + ahead, true},
	} {
		o := etcd.Options{Prefix: fmt.Sprint(c.skew, c.ahead), Skew: c.skew}
		first, second := mustNew(t, client, o), mustNew(t, client, o)
		second.Advance(c.ahead)
		claim := store.Change{To: store.Record{
			ID: store.NewID("op", "scope", "key"), Token: store.Token{State: store.InProgress, Attempt: 1, Owner: 1}, Due: lease,
			Operation: "op", Scope: "scope", Key: "key",
		}}
		take, end := claim, claim
		take.If, take.IfDue, take.To.Attempt, take.To.Owner = claim.To.Token, true, 2, 2
		end.If, end.To.State = claim.To.Token, store.Succeeded
		if !applied(t, first, claim) {
			t.Fatal("the claim is not applied")
		}
		check.Equal(t, applied(t, second, take), c.takes, "%+v: the takeover was applied", c)
		if got := applied(t, first, end); got == c.takes {
			t.Errorf("%+v: the end of the first attempt was applied: %v", c, got)
		}
	}
}

func mustNew(t *testing.T, client *clientv3.Client, o etcd.Options) *etcd.Store {
	t.Helper()
	s := check.Must(etcd.New(client, o))(t)
	return s
}

func applied(t *testing.T, s *etcd.Store, c store.Change) bool {
	t.Helper()
	results := check.Must(s.Swap(t.Context(), []store.Change{c}))(t)
	return results[0].Applied(c)
}
