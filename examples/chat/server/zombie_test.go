//go:build unix && !race

package server_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestZombie stops a leader until its lease has expired, lets another process take
// over and respond, and continues the leader. The zombie runs its handler to the
// end, but nothing of it is committed, and its response is the winner's.
func TestZombie(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		open  func(t *testing.T, mode string) files
		mode  string
		point string
	}{
		// In the handler or in a task the leader would hold SQLite's only write lock.
		"sqlite":          {newServeOnly, leased, afterClaim},
		"postgres leased": {newPostgres, leased, inHandler},
		// PostgreSQL and MariaDB end the transaction of a leader that is idle for a lease.
		"postgres inline": {newPostgres, inline, inHandler},
		"mariadb leased":  {newMariaDB, leased, inHandler},
		"mariadb inline":  {newMariaDB, inline, inHandler},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &zombiePair{pair: startPair(t, test.open(t, test.mode)), point: test.point}
			h.owner, h.domain = h.at(1).signIn(t, "owner"), h.openDomain(t)
			n := rounds(3)
			for i := range n {
				h.round(t, i)
			}
			h.at(0).stop(t)
			seen := see(h.at(0))
			t.Logf("%d rounds: %+v", n, seen)
			check.Equal(t, seen, h.zombieEvents(n), "events")
			check.Equal(t, len(h.at(1).groupsOf(t, h.owner)), n, "groups")
		})
	}
}

func newServeOnly(t *testing.T, mode string) files {
	t.Helper()
	f := newFiles(t, mode)
	f.serveOnly = true
	return f
}

// zombiePair is a pair of servers: the first is stopped at a point, and the second
// takes over.
type zombiePair struct {
	*pair

	point  string
	domain chatdb.Querier
	owner  user
}

func (h *zombiePair) round(t *testing.T, i int) {
	t.Helper()
	zombie, winner := h.at(0), h.at(1)
	asked := creation(h.owner, fmt.Sprintf("key-%d", i), "crew")
	zombie.arm(t, "stop", h.point)
	var late crowd
	late.send(t, 1, zombie.trying(asked))
	zombie.Await(t, "reached "+h.point)
	if h.mode == leased {
		// A mismatch is detected even while the leader has its lease.
		winner.send(t, creation(h.owner, asked.key, "other")).want(t, http.StatusUnprocessableEntity, "key_reused")
	}
	won := winner.settled(t, asked).want(t, http.StatusCreated, "")
	zombie.Signal(t, syscall.SIGCONT)
	check.Equal(t, won.Replayed, false, "round %d: the winner has a replay", i)
	late.wait()[0].wantReplayOf(t, won)
	least := int64(1) // an inline attempt that was rolled back is not visible
	if h.mode == leased {
		least = 2
	}
	if by := attempts(t, h.domain, h.owner, asked.key); len(by) != 1 || by[0] < least {
		t.Fatalf("round %d: created by attempts %v, want one alone, number %d or later", i, by, least)
	}
}

// zombieEvents counts the events that the zombie has reported.
type zombieEvents struct{ Fenced, NotInForce, RolledBack, WinnersAnswer int }

func see(zombie *process) zombieEvents {
	const rolledBack = "transaction NotCommitted: "
	return zombieEvents{
		Fenced:        zombie.Count("event fenced ", ""),
		NotInForce:    zombie.Count(rolledBack, store.ErrSuperseded.Error()),
		RolledBack:    zombie.Count(rolledBack, "") - zombie.Count(rolledBack, "not run"),
		WinnersAnswer: zombie.Count("event replayed ", ""),
	}
}

// zombieEvents returns the events that the zombie must have reported after n rounds.
func (h *zombiePair) zombieEvents(n int) zombieEvents {
	want := zombieEvents{Fenced: n, RolledBack: n, WinnersAnswer: n}
	if h.mode == leased {
		want.NotInForce = n
	}
	return want
}
