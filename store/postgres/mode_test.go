package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The store works in every query mode, and behind PgBouncer in those that need no
// session from one round trip to the next.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	url := database(t)
	bouncer := realtest.PgBouncer(t, url)
	for _, m := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		for _, address := range []string{url, bouncer} {
			if address == bouncer && (m == pgx.QueryExecModeCacheStatement || m == pgx.QueryExecModeDescribeExec) {
				continue
			}
			name := fmt.Sprintf("%v, behind PgBouncer %v", m, address == bouncer)
			s := newStore(t, connect(t, address, mode(m)), postgres.Options{})
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() { tellStory(t, s, fmt.Sprint(name, " ", i)) })
			}
			all.Wait()
		}
	}
}

// Times are read correctly with every DateStyle of the session.
func TestInstantsInEveryStyle(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, m := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		for _, style := range []string{"SQL, DMY", "German", "Postgres"} {
			s := newStore(t, connect(t, url, mode(m), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["datestyle"], c.ConnConfig.RuntimeParams["timezone"] = style, "Asia/Kolkata"
			}), postgres.Options{})
			c := create(fmt.Sprint(m, style), store.InProgress, 1)
			c.To.Due = time.Hour
			mustForce(t, s, c)
			answers, err := s.Get(t.Context(), []store.ID{c.To.ID})
			if err != nil || answers[0].Record == nil || answers[0].Record.Due > time.Hour || answers[0].Record.Due < time.Minute {
				t.Errorf("%v, %s: Get = %+v, %v, want a lease of an hour", m, style, answers, err)
			}
			tellStory(t, s, fmt.Sprint(m, style))
		}
	}
}

// tellStory calls each method of the store, on records of its own.
func tellStory(t *testing.T, s *postgres.Store, name string) {
	t.Helper()
	for _, n := range []int{1, 17} {
		created := batch(fmt.Sprint(name, " ", n, " "), n)
		finished, beaten := make([]store.Change, n), make([]store.Change, n)
		for i, c := range created {
			beaten[i], finished[i] = move(c, store.InProgress), move(c, store.Succeeded)
			beaten[i].To.Due = -1
			finished[i].IfDue, finished[i].To.Outcome = true, []byte{0, byte(i)}
		}
		mustAll(t, s, created)
		mustAll(t, s, beaten)
		if found, err := s.Scan(t.Context(), store.Query{Due: true, State: store.InProgress, Operation: "test"}); err != nil || len(found) < n {
			t.Errorf("Scan = %d records, %v, want %d and more", len(found), err, n)
		}
		mustAll(t, s, finished)
		mustAll(t, s, finished) // repeated
		answers, err := s.Get(t.Context(), []store.ID{finished[n-1].To.ID})
		if err != nil || answers[0].Record == nil || string(answers[0].Record.Outcome) != string([]byte{0, byte(n - 1)}) {
			t.Errorf("Get = %+v, %v, want what was written", answers, err)
		}
		tellOfNotes(t, s, finished[0], name)
		tellOfQueue(t, s, fmt.Sprint(name, " queue ", n, " "), n)
	}
	tellTransactions(t, s, name)
}

// tellOfQueue enqueues n records of an operation of their own and dequeues them.
func tellOfQueue(t *testing.T, s *postgres.Store, name string, n int) {
	t.Helper()
	waiting := batch(name, n)
	for i := range waiting {
		waiting[i].To.State, waiting[i].To.Operation, waiting[i].To.Priority = store.Pending, name, int8(i%9-4)
	}
	mustAll(t, s, waiting)
	d := store.Dequeue{Operation: name, Limit: n, Owner: 1 << 63, Lease: time.Minute}
	for range 2 {
		got, err := s.Dequeue(t.Context(), d)
		if err != nil || len(got) != n || got[0].Priority != int8(min(n-1, 8)-4) || got[n-1].Token != (store.Token{State: store.InProgress, Attempt: 2, Owner: 1 << 63}) {
			t.Errorf("Dequeue(%+v) = %d records, %v, want %d", d, len(got), err, n)
		}
		d.Reread = true
	}
}

// tellOfNotes changes the record of c with a note, and purges it.
func tellOfNotes(t *testing.T, s *postgres.Store, c store.Change, name string) {
	t.Helper()
	noted := move(c, store.Failed)
	noted.To.Expire = -1
	if answer, err := s.SwapNoted(t.Context(), noted, store.Note{Actor: "ann", Reason: name}); err != nil || !answer.Applied(noted) {
		t.Errorf("SwapNoted = %+v, %v, want it applied", answer, err)
	}
	if _, err := s.Counts(t.Context()); err != nil {
		t.Errorf("Counts: %v", err)
	}
	for current(t, s, noted) != (store.Token{}) { // the others purge too
		if _, err := s.Purge(t.Context(), 100); err != nil {
			t.Fatalf("Purge: %v", err)
		}
	}
	if notes, err := s.Notes(t.Context(), noted.To.ID); err != nil || len(notes) == 0 || notes[0].Reason != name {
		t.Errorf("Notes = %+v, %v", notes, err)
	}
}

func mustAll(t *testing.T, s *postgres.Store, changes []store.Change) {
	t.Helper()
	answers, err := s.Swap(t.Context(), changes)
	if err != nil {
		t.Errorf("Swap: %v", err)
		return
	}
	for i, answer := range answers {
		if !answer.Applied(changes[i]) {
			t.Errorf("change %d of %d = %+v, want it applied", i, len(changes), answer)
		}
	}
}

func tellTransactions(t *testing.T, s *postgres.Store, name string) {
	t.Helper()
	type run = func(ctx context.Context, tx pgx.Tx, found store.SwapResult) (*store.Change, error)
	first, queued := create(name+" inline", store.Succeeded, 1), create(name+" queued", store.Pending, 1)
	again, failed := create(name+" inline", store.Succeeded, 2), create(name+" failed", store.Failed, 1)
	next := move(queued, store.Succeeded)
	for i, row := range []struct {
		last *store.Change
		hold bool
		do   func(ctx context.Context, tx pgx.Tx) error
		want store.Verdict
		is   error
	}{
		{&first, true, func(ctx context.Context, tx pgx.Tx) error {
			_, err := s.SwapTx(ctx, tx, []store.Change{queued, again})
			return errors.Join(err, effect(ctx, tx, name))
		}, store.NotCommitted, store.ErrSuperseded},
		{&first, true, func(ctx context.Context, tx pgx.Tx) error {
			_, err := s.SwapTx(ctx, tx, []store.Change{queued})
			return errors.Join(err, effect(ctx, tx, name))
		}, store.Committed, nil},
		{&again, true, func(ctx context.Context, tx pgx.Tx) error { return effect(ctx, tx, name) }, store.NotCommitted, store.ErrSuperseded},
		{&next, false, func(ctx context.Context, tx pgx.Tx) error { return effect(ctx, tx, name) }, store.Committed, nil},
		{&next, false, func(ctx context.Context, tx pgx.Tx) error { return effect(ctx, tx, name) }, store.NotCommitted, store.ErrSuperseded},
		{&failed, true, func(ctx context.Context, tx pgx.Tx) error { return do(ctx, tx, `SELECT 1 / 0`) }, store.Committed, nil},
		{nil, true, func(context.Context, pgx.Tx) error { return errHandler }, store.NotCommitted, errHandler},
	} {
		id := store.NewID("test", "scope", name)
		if row.last != nil {
			id = row.last.To.ID
		}
		verdict, err := s.Atomic(t.Context(), id, row.hold, run(func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			return row.last, row.do(ctx, tx)
		}))
		if verdict != row.want || !errors.Is(err, row.is) {
			t.Errorf("transaction %d = %v, %v, want %v, %v", i, verdict, err, row.want, row.is)
		}
	}
	check.Equal(t, effects(t, s.Pool(), name), 2, "effects")
}
