//go:build unix && !race

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestKilledAtEveryPoint kills a server at each point of a creation, starts it
// again, retries, and counts the effects in the chat's tables.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	for _, mode := range modes() {
		for _, point := range []string{beforeClaim, afterClaim, inHandler, beforeCommit, afterCommit, beforeAnswer} {
			t.Run(mode+"/"+point, func(t *testing.T) {
				t.Parallel()
				newCrash(t, mode, point).run(t)
			})
		}
	}
}

// crash tests one point in one mode with one set of databases. Each server settles
// the record that the server before it left, and is then killed.
type crash struct {
	files
	point  string
	domain chatdb.Querier
	engine semel.Runner
	server *process
	owner  user
}

func newCrash(t *testing.T, mode, point string) *crash {
	t.Helper()
	c := &crash{files: newFiles(t, mode), point: point}
	c.start(t)
	c.owner = c.server.signIn(t, "owner")
	c.domain, c.engine = c.openDomain(t), c.files.engine(t)
	return c
}

// start starts a server. Its sweeper runs once, at the start: if a creation loses its lease on a slow machine,
// a sweep before the creation ends would leave its record in doubt.
func (c *crash) start(t *testing.T) {
	t.Helper()
	c.server = start(t, append(c.args(shortLease), "-sweep", "1h")...)
}

func (c *crash) run(t *testing.T) {
	n := rounds(2)
	for i := range n {
		c.round(t, i)
	}
	for _, g := range c.server.groupsOf(t, c.owner) {
		c.server.wantWelcomes(t, c.domain, c.owner, g["id"].(string), c.owner.ID)
	}
	t.Logf("%s, %s: killed %d times, each time exactly one group", c.mode, c.point, n)
}

// round kills the server while it handles one key.
func (c *crash) round(t *testing.T, i int) {
	t.Helper()
	// All rounds use the same name, so only the key distinguishes the groups.
	told := creation(c.owner, fmt.Sprintf("told-%d", i), "crew")
	before := c.server.settled(t, told).want(t, http.StatusCreated, "")

	asked := creation(c.owner, fmt.Sprintf("asked-%d", i), "crew")
	c.server.arm(t, "kill", c.point)
	if a, err := c.server.settle(t.Context(), asked); err == nil {
		t.Fatalf("a server that was to be killed %s answered %d %s", c.point, a.Status, a.Body)
	}
	c.server.killedAt(t, c.point)
	c.start(t)

	// Other keys must work as usual.
	other := c.server.settled(t, creation(c.owner, fmt.Sprintf("other-%d", i), "crew")).want(t, http.StatusCreated, "")
	if other.Replayed {
		t.Fatal("a new key was answered with a replay")
	}
	c.settleAgain(t, asked)
	c.server.settled(t, told).wantReplayOf(t, before)
}

// committed reports whether the effect was committed before the kill.
func (c *crash) committed() bool {
	return slices.Contains([]string{afterCommit, beforeAnswer}, c.point)
}

// settleAgain retries after the restart until the answer is final.
func (c *crash) settleAgain(t *testing.T, asked request) {
	t.Helper()
	if c.mode == records && c.doubtful() {
		c.inDoubt(t, asked)
	}
	first := c.server.settled(t, asked).want(t, http.StatusCreated, "")
	check.Equal(t, first.Replayed, c.committed(), "killed %s: a replay", c.point)
	c.server.settled(t, asked).wantReplayOf(t, first)
	check.Equal(t, creations(t, c.domain, c.owner, asked.key), 1, "killed %s: creations", c.point)
}

// doubtful reports whether the record shows a claim only, so that the effect is
// unknown. That happens only if the records are in another database.
func (c *crash) doubtful() bool {
	return slices.Contains([]string{afterClaim, inHandler, beforeCommit}, c.point)
}

// inDoubt checks that a record in doubt neither runs again nor fails, until an
// operator resolves it as not executed.
func (c *crash) inDoubt(t *testing.T, asked request) {
	t.Helper()
	for range 2 {
		c.server.settled(t, asked).want(t, http.StatusConflict, "outcome_unknown")
	}
	check.Equal(t, creations(t, c.domain, c.owner, asked.key), 0, "killed %s: creations before the doubt is resolved", c.point)
	r := c.recordOf(t, c.engine, c.owner, asked.key)
	if r.State != store.InDoubt {
		t.Fatalf("the record is %v, want InDoubt", r.State)
	}
	_, err := admin.Resolve(t.Context(), c.engine, admin.Resolution{
		ID: r.ID, To: store.Pending, Actor: "operator", Reason: "looked: there is no such group",
	})
	check.Require(t, err)
}
