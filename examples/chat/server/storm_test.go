package server_test

import (
	"context"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
)

// TestFiveHundredDuplicates sends 500 concurrent requests for one creation. The
// handler is called once, and all responses have the same bytes.
func TestFiveHundredDuplicates(t *testing.T) { //nolint:paralleltest // counts goroutines
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) { storm(t, newFiles(t, mode), 500) })
	}
	for _, mode := range []string{inline, leased} {
		t.Run("postgres/"+mode, func(t *testing.T) { storm(t, newPostgres(t, mode), 500) })
		t.Run("mariadb/"+mode, func(t *testing.T) { storm(t, newMariaDB(t, mode), 500) })
	}
}

func storm(t *testing.T, f files, n int) {
	b := newBarrier()
	s := serveLocal(t, b.at(f.mode), f.args(time.Minute)...)
	s.hurry = 1
	owner, other := s.signIn(t, "owner"), s.signIn(t, "other")
	domain := f.openDomain(t)
	before := s.goroutines()

	b.armed.Store(true)
	asked := creation(owner, "storm", "crew", other.ID)
	answers := make([]answer, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			a, err := s.settle(t.Context(), asked)
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			answers[i] = a
		})
	}
	b.await(t)
	s.othersGoOn(t, f, other)
	close(b.open)
	all.Wait()

	wantFirst(t, f.mode, wantSame(t, answers))
	if got := b.entered.Load(); got != 1+othersCreate(f) {
		t.Errorf("the handler was entered %d times", got)
	}
	if got := creations(t, domain, owner, asked.key); got != 1 {
		t.Errorf("%d creations, want 1", got)
	}
	s.wantGoroutines(t, before)
}

// othersGoOn creates groups of another user while a leader is held.
func (s *localServer) othersGoOn(t *testing.T, f files, other user) {
	t.Helper()
	if groups := s.groupsOf(t, other); len(groups) != 0 {
		t.Errorf("another user sees %d groups while the creation is held, want 0", len(groups))
	}
	if othersCreate(f) > 0 {
		s.settled(t, creation(other, "other", "theirs")).want(t, http.StatusCreated, "")
	}
}

// othersCreate is the number of creations that are possible while a leader is held:
// none on SQLite if the leader holds the only write lock.
func othersCreate(f files) int64 {
	if f.mode == inline && f.postgres == "" && f.dsn == "" {
		return 0
	}
	return 1
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
		if a.Header.Get("Location") != answers[0].Header.Get("Location") {
			t.Errorf("request %d got another Location", i)
		}
	}
	return first
}

// wantFirst checks that exactly one answer is not a replay. If the records are in
// another database, a follower may find the group before the leader has recorded
// it, and heal the record. The leader's answer is then a replay, too.
func wantFirst(t *testing.T, mode string, first int) {
	t.Helper()
	if first > 1 || first == 0 && mode != records {
		t.Errorf("%d answers without Idempotent-Replayed, want 1", first)
	}
}

// goroutines lists the running goroutines after closing idle connections. It leaves
// out those that the worker keeps for its next tasks, because their number depends
// on the speed of earlier tasks, those of the lanes that the relay keeps for a while after
// an event, that of the pool which the PostgreSQL store opens when there is much to record and
// keeps while it is used, and those of MariaDB's connections in the pools.
func (s *localServer) goroutines() []string {
	s.http.CloseIdleConnections()
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2) // writing to a strings.Builder cannot fail
	return slices.DeleteFunc(strings.Split(stacks.String(), "\n\n"), func(stack string) bool {
		return strings.Contains(stack, "task.(*goroutinePool).worker(") || strings.Contains(stack, "outbox.(*lane).run(") ||
			strings.Contains(stack, "pgxpool.(*Pool).backgroundHealthCheck(") ||
			strings.Contains(stack, "mysql.(*mysqlConn).")
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
			answers := make([]answer, 20)
			var all sync.WaitGroup
			ask := func(i int) {
				all.Go(func() {
					a, err := s.try(t.Context(), creation(owner, "k", "crew"))
					if err != nil {
						t.Errorf("request %d: %v", i, err)
					}
					answers[i] = a
				})
			}
			ask(0)
			b.await(t)
			for i := 1; i < len(answers); i++ {
				ask(i)
			}
			close(b.open)
			all.Wait()
			wantFirst(t, mode, wantSame(t, answers))
		})
	}
}
