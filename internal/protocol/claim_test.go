package protocol

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/store"
)

// TestStoresClaimAsTheProtocolDoes: the claim of a Dequeuer is the claim of the
// transition function, under every policy. No store has a rule of its own.
func TestStoresClaimAsTheProtocolDoes(t *testing.T) {
	t.Parallel()
	d := store.Dequeue{Operation: "op", Limit: 1, Owner: fresh, Lease: time.Minute}
	for policy := Unset; policy <= AtLeastOnce; policy++ {
		for _, r := range everyRecord() {
			if r.State != store.Pending || r.Due > 0 {
				continue
			}
			r.Operation, r.Scope, r.Key, r.Fingerprint, r.Priority = "op", "scope", "key", []byte("f"), 3
			r.Input, r.Outcome, r.Expire = []byte("in"), []byte("p{}"), time.Hour
			want := Next(r, ClaimQueued(r, d.Owner, policy, d.Lease))
			if diff := cmp.Diff(want.Change, d.Claim(r)); want.Step != StepClaim || diff != "" {
				t.Errorf("%+v: the claim of a store is not the protocol's %q (-protocol +store):\n%s", r.Token, want.Step, diff)
			}
		}
	}
}
