//go:build unix

package server_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/semelgo/semel/store"
)

// TestZombie stops a leader between its claim and its transaction, lets another
// process take over and answer, and continues it: the zombie runs its handler to
// the end, and none of it comes in force.
func TestZombie(t *testing.T) {
	t.Parallel()
	f := newFiles(t, leased)
	zombie, winner := start(t, f.args(shortLease)...), start(t, f.args(shortLease)...)
	domain := openFile(t, f.domain)
	owner := winner.signIn(t, "owner")
	n := rounds(20)
	for i := range n {
		asked := creation(owner, fmt.Sprintf("key-%d", i), "crew")
		zombie.arm(t, "stop", afterClaim)
		late := make(chan answer, 1)
		go func() {
			a, err := zombie.try(t.Context(), asked)
			if err != nil {
				t.Errorf("the zombie did not answer: %v", err)
			}
			late <- a
		}()
		zombie.reached(t, afterClaim)
		// Another request's key is told apart even while the leader has its lease.
		winner.send(t, creation(owner, asked.key, "other")).want(t, http.StatusUnprocessableEntity, "key_reused")
		won := winner.settled(t, asked).want(t, http.StatusCreated, "")
		if err := zombie.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		got := (<-late).want(t, http.StatusCreated, "")
		if won.Replayed || !got.Replayed || got.Body != won.Body {
			t.Fatalf("round %d: the winner told %q (replayed %v), the zombie %q (replayed %v)",
				i, won.Body, won.Replayed, got.Body, got.Replayed)
		}
		if by := attempts(t, domain, owner, asked.key); len(by) != 1 || by[0] < 2 {
			t.Fatalf("round %d: created by attempts %v, want a later one than the first, alone", i, by)
		}
	}
	zombie.stop(t)
	seen := see(zombie)
	t.Logf("%d rounds: %+v", n, seen)
	if want := (sightings{NotInForce: n, RolledBack: n, WinnersAnswer: n}); seen != want {
		t.Errorf("saw %+v, want %+v", seen, want)
	}
	if got := len(winner.groupsOf(t, owner)); got != n {
		t.Errorf("%d groups, want %d", got, n)
	}
}

// sightings counts what the zombie itself has reported.
type sightings struct{ NotInForce, RolledBack, WinnersAnswer int }

func see(zombie *process) sightings {
	return sightings{
		NotInForce:    zombie.said("event fenced ", ""),
		RolledBack:    zombie.said("transaction NotCommitted: ", store.ErrNotInForce.Error()),
		WinnersAnswer: zombie.said("event replayed ", ""),
	}
}
