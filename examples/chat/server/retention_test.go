//go:build unix

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// TestOldRecordsArePurged: a server purges the records of keys and of tasks by itself, and
// declares its retention to clients.
func TestOldRecordsArePurged(t *testing.T) {
	t.Parallel()
	f := newFiles(t, records)
	// Nothing here waits for a lease. A short one could expire on a slow machine, and the sweeper would doubt the creation.
	s := serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-retention", "6s", "-sweep", "1s")...)
	owner := s.signIn(t, "owner")
	asked := creation(owner, "k", "crew")
	group := s.settled(t, asked).want(t, http.StatusCreated, "").value(t)["id"].(string)
	s.wantWelcomes(t, f.openDomain(t), owner, group, owner.ID)
	text := s.send(t, request{method: "GET", path: "/openapi.yaml"}).Body
	if strings.Count(text, "retention: PT6S") != 4 || strings.Contains(text, "P30D") {
		t.Error("the description does not tell of this retention")
	}
	f.untilState(t, owner, asked.key, store.Absent)
	s.untilQueue(t, owner, "welcome_member", queueCount{})
	check.Equal(t, len(s.messagesIn(t, owner, group)), 1, "messages, of which none is purged")
}

// TestSweeperSettlesRecordsOfDeadServers: the next server sweeps the record of a
// killed server without a retry.
func TestSweeperSettlesRecordsOfDeadServers(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]store.State{leased: store.Pending, records: store.InDoubt} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFiles(t, mode)
			s := start(t, f.args(shortLease)...)
			owner := s.signIn(t, "owner")
			s.arm(t, "kill", afterClaim)
			_, _ = s.settle(t.Context(), creation(owner, "k", "crew"))
			s.AwaitKilled(t)
			start(t, append(f.args(shortLease), "-sweep", shortLease.String())...)
			f.untilState(t, owner, "k", want)
		})
	}
}

// untilState waits until the record of a creation has the state.
func (f files) untilState(t *testing.T, u user, key string, want store.State) {
	t.Helper()
	engine := f.engine(t)
	realtest.Poll(t, fmt.Sprintf("the record to be %v", want), func() bool {
		return f.recordOf(t, engine, u, key).State == want
	})
}
