//go:build unix && !race

package server_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestKilledWhileItWelcomes kills a server at each point of a welcome and starts it
// again: each member is welcomed once. TestKilledAtEveryPoint tests the points of
// the creations that enqueue the welcomes.
func TestKilledWhileItWelcomes(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	for name, open := range map[string]func(t *testing.T) files{
		"inline":          func(t *testing.T) files { return newFiles(t, inline) },
		"records":         func(t *testing.T) files { return newFiles(t, records) },
		"postgres leased": func(t *testing.T) files { return newPostgres(t, leased) },
	} {
		for _, point := range []string{welcomeClaimed, welcomeWritten, welcomeToCommit, welcomeCommitted} {
			t.Run(name+"/"+point, func(t *testing.T) {
				t.Parallel()
				killedWelcoming(t, open(t), point)
			})
		}
	}
}

func killedWelcoming(t *testing.T, f files, point string) {
	s := start(t, f.args(shortLease)...)
	owner, other := s.signIn(t, "owner"), s.signIn(t, "other")
	domain := f.openDomain(t)
	n := rounds(1)
	var groups []string
	for i := range n {
		asked := creation(owner, fmt.Sprintf("key-%d", i), "crew", other.ID)
		s.arm(t, "kill", point)
		go func() { _, _ = s.settle(t.Context(), asked) }() // it may have an answer or not
		s.killedAt(t, point)
		s = start(t, f.args(shortLease)...)
		group := s.settled(t, asked).want(t, http.StatusCreated, "").value(t)["id"].(string)
		s.wantWelcomes(t, domain, owner, group, owner.ID, other.ID)
		groups = append(groups, group)
		// A welcome is visible a moment before its process has passed the last point. The next kill
		// must not hit that process there, while it creates the next group.
		s.stop(t)
		s = start(t, f.args(shortLease)...)
	}
	s.untilQueue(t, owner, "welcome_member", queueCount{Done: int64(2 * n)})
	for _, group := range groups { // no task is left that could still run
		s.wantWelcomes(t, domain, owner, group, owner.ID, other.ID)
	}
	t.Logf("killed %d times %s, each member welcomed once", n, point)
}
