package semel

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/store"
)

// TestStoresClaimAsTheProtocolDoes: what a Dequeuer makes of a record is the claim
// of the transition function, under every policy, so that no store has a rule of its
// own.
func TestStoresClaimAsTheProtocolDoes(t *testing.T) {
	t.Parallel()
	d := store.Dequeue{Operation: "op", Limit: 1, Owner: fresh, Lease: time.Minute}
	for policy := policyUnset; policy <= policyAtLeastOnce; policy++ {
		for _, r := range everyRecord() {
			if r.State != store.Pending || r.Due > 0 {
				continue
			}
			r.Operation, r.Scope, r.Key, r.Fingerprint, r.Priority = "op", "scope", "key", []byte("f"), 3
			r.Input, r.Outcome, r.Expire = []byte("in"), []byte("p{}"), time.Hour
			e := claimOf(r, policy, d.Lease)
			e.owner = d.Owner
			want := next(r, e)
			if diff := cmp.Diff(want.change, d.Claim(r)); want.step != stepClaim || diff != "" {
				t.Errorf("%+v: the claim of a store is not the protocol's %q (-protocol +store):\n%s", r.Token, want.step, diff)
			}
		}
	}
}
