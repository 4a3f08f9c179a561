package server_test

import (
	"context"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestFiveHundredDuplicates sends 500 concurrent requests for one creation, and 100 to
// servers of databases, which wait for their connections anyway. The handler is called once, and all responses have the same bytes.
// Another user has a group of its own with the same key.
func TestFiveHundredDuplicates(t *testing.T) { //nolint:paralleltest // counts goroutines
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) { sendDuplicates(t, newFiles(t, mode), 500) })
	}
	for _, mode := range []string{inline, leased} {
		t.Run("postgres/"+mode, func(t *testing.T) { sendDuplicates(t, newPostgres(t, mode), 100) })
		t.Run("mariadb/"+mode, func(t *testing.T) {
			if mode != inline {
				fullOnly(t)
			}
			sendDuplicates(t, newMariaDB(t, mode), 100)
		})
	}
}

func sendDuplicates(t *testing.T, f files, n int) {
	b := newBarrier()
	s := serveLocal(t, b.at(f.mode), f.args(time.Minute)...)
	s.hurry = 1
	owner, other := s.signIn(t, "owner"), s.signIn(t, "other")
	domain := f.openDomain(t)
	before := s.goroutines()

	b.armed.Store(true)
	asked := creation(owner, "k", "crew", other.ID)
	var all crowd
	all.send(t, n, s.settling(asked))
	<-b.arrived
	s.othersGoOn(t, f, other)
	close(b.open)
	answers := all.wait()
	wantFirst(t, f.mode, answers)
	ours, theirs := answers[0].value(t), s.settled(t, theirCreation(other)).want(t, http.StatusCreated, "").value(t)
	for _, field := range []string{"id", "conversation_id", "owner_id"} {
		if ours[field] == theirs[field] {
			t.Errorf("the groups of two users with one key have %s %v", field, ours[field])
		}
	}
	check.Equal(t, b.entered.Load(), 2, "calls of the handler")
	check.Equal(t, creations(t, domain, owner, asked.key), 1, "creations")
	s.wantGoroutines(t, before)
}

// theirCreation is the creation of another user, with the same key.
func theirCreation(other user) request { return creation(other, "k", "crew") }

// othersGoOn creates a group of another user while a leader is held. That is not possible in SQLite if the
// leader holds the only write lock.
func (s *localServer) othersGoOn(t *testing.T, f files, other user) {
	t.Helper()
	check.Equal(t, len(s.groupsOf(t, other)), 0, "groups of another user while the creation is held")
	if f.mode != inline || f.postgres != "" || f.dsn != "" {
		s.settled(t, theirCreation(other)).want(t, http.StatusCreated, "")
	}
}

// wantSame checks that all answers are equal, and counts those that are not
// replays.
func wantSame(t *testing.T, answers []answer) (first int) {
	t.Helper()
	for i, a := range answers {
		if a.Status != http.StatusCreated || a.Body != answers[0].Body {
			t.Errorf("request %d got %d %q, request 0 %q", i, a.Status, a.Body, answers[0].Body)
		}
		if !a.Replayed {
			first++
		}
		check.Equal(t, a.Header.Get("Location"), answers[0].Header.Get("Location"), "the Location of request %d", i)
	}
	return first
}

// wantFirst checks that all answers are equal, and that exactly one is not a replay. If the records are in
// another database, a follower may find the group before the leader has recorded
// it, and heal the record. The leader's answer is then a replay, too.
func wantFirst(t *testing.T, mode string, answers []answer) {
	t.Helper()
	if first := wantSame(t, answers); first > 1 || first == 0 && mode != records {
		t.Errorf("%d answers without Idempotent-Replayed, want 1", first)
	}
}

// goroutines lists the running goroutines after closing idle connections. It leaves
// out those that the worker keeps for its next tasks, because their number depends
// on the speed of earlier tasks, those of the lanes that the relay keeps for a while after
// an event, that of the pool which the PostgreSQL store opens when there is much to record and
// keeps while it is used, those of MariaDB's connections in the pools, and the reader that pgx
// leaves on a connection of PostgreSQL whose write was slow, until the connection is used again.
func (s *localServer) goroutines() []string {
	s.http.CloseIdleConnections()
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2) // writing to a strings.Builder cannot fail
	return slices.DeleteFunc(strings.Split(stacks.String(), "\n\n"), func(stack string) bool {
		return strings.Contains(stack, "task.(*goroutinePool).worker(") || strings.Contains(stack, "outbox.(*lane).run(") ||
			strings.Contains(stack, "pgxpool.(*Pool).backgroundHealthCheck(") ||
			strings.Contains(stack, "mysql.(*mysqlConn).") || strings.Contains(stack, "bgreader.(*BGReader).bgRead(")
	})
}

// wantGoroutines waits until the number of goroutines is the same as before.
func (s *localServer) wantGoroutines(t *testing.T, before []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var now []string
	err := realtest.Retry(ctx, func() bool {
		now = s.goroutines()
		return len(now) <= len(before)
	})
	if err != nil {
		t.Fatalf("%d goroutines, %d before:\n%s", len(now), len(before), strings.Join(now, "\n\n"))
	}
}

// TestDuplicatesWait: duplicates wait in the server instead of being told to retry.
func TestDuplicatesWait(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{inline, leased} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f, b := newFiles(t, mode), newBarrier()
			s := serveLocal(t, b.at(mode), append(f.args(time.Minute), "-wait", patience.String())...)
			owner := s.signIn(t, "owner")
			b.armed.Store(true)
			var all crowd
			all.send(t, 1, s.trying(creation(owner, "k", "crew")))
			<-b.arrived
			all.send(t, 19, s.trying(creation(owner, "k", "crew")))
			close(b.open)
			wantFirst(t, mode, all.wait())
		})
	}
}

// TestBehindPgBouncer sends duplicates to two servers behind a pooler that gives
// every transaction another connection.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{inline, leased} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newPostgres(t, mode)
			f.postgres = inExecMode(realtest.PgBouncer(t, f.postgres))
			servers := [2]*localServer{}
			for i := range servers {
				servers[i] = serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
			}
			owner := servers[0].signIn(t, "owner")
			other := servers[1].signIn(t, "other")
			var all crowd
			for i := range 40 {
				all.send(t, 1, servers[i%2].settling(creation(owner, "k", "crew", other.ID)))
			}
			answers := all.wait()
			wantFirst(t, mode, answers)
			check.Equal(t, creations(t, f.openDomain(t), owner, "k"), 1, "creations")
			path := answers[0].Header.Get("Location") + "/messages"
			said := request{method: "POST", path: path, as: other, key: "m", body: `{"text":"hello"}`}
			first := servers[0].send(t, said).want(t, http.StatusCreated, "")
			servers[1].send(t, said).wantReplayOf(t, first)
			servers[0].send(t, creation(owner, "f", "crew", 99)).want(t, http.StatusUnprocessableEntity, "unknown_member")
		})
	}
}

// inExecMode turns prepared statements off, as the README says.
func inExecMode(url string) string {
	joint := "?"
	if strings.Contains(url, "?") {
		joint = "&"
	}
	return url + joint + "default_query_exec_mode=exec"
}
