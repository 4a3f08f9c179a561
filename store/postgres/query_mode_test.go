package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The store works in every query mode, and behind PgBouncer in those that need no
// session from one round trip to the next. The session's DateStyle and time zone change
// nothing. A store of a *sql.DB, also of one that takes its connections from the same pool,
// uses the same records.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	url := database(t)
	bouncer := realtest.PgBouncer(t, url)
	abroad := func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["datestyle"], c.ConnConfig.RuntimeParams["timezone"] = "SQL, DMY", "Asia/Kolkata"
	}
	for _, m := range queryModes() {
		for name, pool := range map[string]*pgxpool.Pool{"direct": connect(t, url, mode(m), abroad), "PgBouncer": connect(t, bouncer, mode(m))} {
			if name == "PgBouncer" && (m == pgx.QueryExecModeCacheStatement || m == pgx.QueryExecModeDescribeExec) {
				continue
			}
			s := newStore(t, pool, postgres.Options{})
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() { tellStory(t, s, fmt.Sprint(m, name, i)) })
			}
			all.Wait()
			mustAnswerEach(t, s, s.Swap, fmt.Sprint(m, name))
			mustAnswerEach(t, s, func(ctx context.Context, changes []store.Change) (answers []store.SwapResult, err error) {
				err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					answers, err = s.SwapTx(ctx, tx, changes)
					return err
				})
				return answers, err
			}, fmt.Sprint(m, name, " in a transaction"))
			fromPool := stdlib.OpenDBFromPool(pool)
			defer fromPool.Close()
			fromPool.SetMaxOpenConns(10)
			for where, db := range map[string]*sql.DB{"own": openSQL(t, pool.Config().ConnString(), m), "pool": fromPool} {
				for i := range 4 {
					all.Go(func() { tellSQLStory(t, newSQLStore(t, db, postgres.Options{}), s, fmt.Sprint(m, name, where, i)) })
				}
			}
			all.Wait()
		}
	}
}

// The store's own sessions answer as the pool's connections do.
func TestSessionsAnswerEach(t *testing.T) {
	t.Parallel()
	s, _ := open(t, postgres.Options{})
	s.SetSessionsIdle(time.Hour) // however slow the machine is, none is closed as unused
	check.Require(t, s.OpenSessions(t.Context()))
	mustAnswerEach(t, s, s.Swap, "")
	idle, _ := s.Sessions()
	check.Equal(t, idle, postgres.DefaultMaxSessions, "sessions")
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
	owner := 1<<63 | rand.Uint64() // the calls of one owner wait for each other
	d := store.Dequeue{Operation: name, Limit: n, Owner: owner, Lease: time.Minute}
	for range 2 {
		got, err := s.Dequeue(t.Context(), d)
		if err != nil || len(got) != n || got[0].Priority != int8(min(n-1, 8)-4) || got[n-1].Token != (store.Token{State: store.InProgress, Attempt: 2, Owner: owner}) {
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

// swapFunc is Swap, or SwapTx in a transaction.
type swapFunc = func(context.Context, []store.Change) ([]store.SwapResult, error)

// mustAnswerEach requires that each change of a shared statement has its own result: applied,
// or the current record; that a repeated call returns the same results; and that the records
// have what was written.
func mustAnswerEach(t *testing.T, s *postgres.Store, swap swapFunc, name string) {
	t.Helper()
	const n = 12
	theirs := create(name+"3", store.InProgress, 99)
	mustForce(t, s, theirs)
	claims := batch(name, n)
	for i := range claims {
		claims[i].To.Due, claims[i].To.Scope, claims[i].To.Key = time.Hour, fmt.Sprint("scope ", i), fmt.Sprint("\x00key ", i)
		claims[i].To.Fingerprint, claims[i].To.Input = []byte{0, byte(i)}, [][]byte{nil, {}, {0, byte(i)}}[i%3]
	}
	want := tokensOf(claims)
	want[3] = theirs.To.Token
	for range 2 { // the second Swap repeats the changes
		mustBeCurrent(t, swap, claims, want)
	}
	ends := make([]store.Change, n)
	for i, c := range claims {
		ends[i] = move(c, store.Succeeded)
		ends[i].To.Expire, ends[i].To.Outcome = time.Hour, fmt.Append(nil, "outcome ", i)
	}
	ends[5].To.ID, want[5] = store.NewID("test", "scope", name+"absent"), store.Token{} // there is no record
	ends[6].To.Outcome = nil                                                            // has another statement
	ends[7].If.Attempt, want[7] = 2, claims[7].To.Token
	ends[8].To.Outcome = []byte{}
	ends[9].If.Attempt, ends[9].To.Attempt, want[9] = 2, 2, claims[9].To.Token
	for i := range ends {
		if i != 3 && i != 5 && i != 7 && i != 9 {
			want[i] = ends[i].To.Token
		}
	}
	for range 2 {
		mustBeCurrent(t, swap, ends, want)
	}
	others := slices.Clone(ends) // too late: the attempts have ended
	for i := range others {
		others[i].To.State, others[i].To.Outcome = store.Failed, []byte("another")
	}
	mustBeCurrent(t, swap, others, want)
	answers := check.Must(s.Get(t.Context(), idsOf(claims)))(t)
	for i, answer := range answers {
		r, told := answer.Record, ""
		if want[i].State == store.Succeeded && i != 6 && i != 8 {
			told = fmt.Sprint("outcome ", i)
		}
		if i == 3 {
			continue
		}
		if (r.Input == nil) != (claims[i].To.Input == nil) || string(r.Input) != string(claims[i].To.Input) || r.Scope != claims[i].To.Scope || r.Key != claims[i].To.Key || string(r.Fingerprint) != string(claims[i].To.Fingerprint) || string(r.Outcome) != told {
			t.Errorf("%srecord %d is %+v, want what was claimed, with the outcome %q", name, i, r, told)
		}
		if left := max(r.Due, r.Expire); left <= 59*time.Minute || left > time.Hour {
			t.Errorf("%srecord %d has %v left, want an hour", name, i, left)
		}
	}
}

// mustBeCurrent makes the changes, and requires these tokens to be current afterwards.
func mustBeCurrent(t *testing.T, swap swapFunc, changes []store.Change, want []store.Token) {
	t.Helper()
	answers := check.Must(swap(t.Context(), changes))(t)
	for i, answer := range answers {
		other := want[i] != changes[i].To.Token && want[i] != store.Token{}
		if answer.Token != want[i] || (answer.Record != nil) != other || answer.Err != nil || answer.Busy {
			t.Errorf("change %d to %+v answers %+v, want %+v", i, changes[i].To.Token, answer, want[i])
		}
	}
}

func tokensOf(changes []store.Change) []store.Token {
	all := make([]store.Token, len(changes))
	for i, c := range changes {
		all[i] = c.To.Token
	}
	return all
}

func idsOf(changes []store.Change) []store.ID {
	all := make([]store.ID, len(changes))
	for i, c := range changes {
		all[i] = c.To.ID
	}
	return all
}
