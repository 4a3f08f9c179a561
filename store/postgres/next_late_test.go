package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// hang lets the COMMIT of one with an effect of key hang until the end is called.
func hang(t *testing.T, others *pgxpool.Pool, key string) (end func()) {
	t.Helper()
	trigger(t, others, `IF NEW.key = '`+key+`' THEN PERFORM pg_advisory_xact_lock(77); END IF`)
	tx, err := others.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, tx, `SELECT pg_advisory_xact_lock(77)`)
	return func() {
		if err := tx.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// waitFor waits until a session waits for a lock of that type.
func waitFor(t *testing.T, others *pgxpool.Pool, of string) {
	t.Helper()
	for !one[bool](t, others, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = $1 AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`, of) {
		continue
	}
}

// A caller that gives up while another transaction is about to begin its own
// returns at once, and leaves nothing behind.
func TestNextGivesUp(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	end := hang(t, others, "3")
	turns := several(6)
	gone := turns[4]
	ctx, cancel := context.WithCancel(t.Context())
	gone.ctx = ctx
	gone.run = func(context.Context, pgx.Tx, store.SwapResult) error { t.Error("it is run"); return errHandler }
	told := make(chan struct{})
	go func() {
		defer close(told)
		waitFor(t, others, "advisory")
		cancel()
		end()
	}()
	sortRanked(t, s, turns...)
	<-told
	mustCommit(t, others, append(turns[:4], turns[5])...)
	if gone.verdict != store.NotCommitted || !errors.Is(gone.err, context.Canceled) {
		t.Errorf("Atomic = %v, %v, want it canceled", gone.verdict, gone.err)
	}
	mustBeFree(t, s, gone.last)
	if n := one[int](t, others, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'`); n != 0 {
		t.Errorf("%d sessions are in a transaction", n)
	}
}

// A transaction that hangs at its end does not delay a caller that was promised its
// connection, if another is free.
func TestNextDoesNotWaitForOneThatHangs(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"room that comes": false, "room that is there": true} {
		url := database(t)
		others := connect(t, url)
		s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 3 }), postgres.Options{})
		s.SetKeptFor(time.Hour)
		end := hang(t, others, "3")
		turns, ran := several(5), make(chan struct{})
		turns[4].run = func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) error {
			close(ran)
			return effect(ctx, tx, "4")
		}
		beside, enough := &turn{last: create("beside", store.Succeeded, 1)}, make(chan struct{})
		over, within := make(chan struct{}), make(chan struct{})
		beside.run = func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) error {
			close(within)
			<-enough
			return effect(ctx, tx, "beside")
		}
		go func() {
			defer close(over)
			beside.atomic(t, s, func() {})
		}()
		<-within
		go func() {
			waitFor(t, others, "advisory")
			for !early && s.Waiting() == 0 { // until the promise is late
				continue
			}
			close(enough)
			<-ran
			end()
		}()
		sortRanked(t, s, turns...)
		<-over
		t.Log(name)
		mustCommit(t, others, append(turns, beside)...)
	}
}

// The reply to COMMIT arrives although the next transaction cannot read: another
// session has locked the table.
func TestEndIsToldWhileTheNextCannotLook(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	turns := several(6)
	tx, err := others.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan struct{})
	turns[3].run = func(ctx context.Context, inner pgx.Tx, _ store.SwapResult) error {
		go func() {
			defer close(locked)
			mustExec(t, tx, `LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE`)
		}()
		waitFor(t, others, "relation")
		return effect(ctx, inner, "3")
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		<-locked
		for !turns[3].over.Load() {
			continue
		}
		if err := tx.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	sortRanked(t, s, turns...)
	<-told
	mustCommit(t, others, turns...)
}

// A caller whose promised transaction did not come waits again in the old order.
func TestNextKeepsTheOrderOfThoseLetDown(t *testing.T) {
	t.Parallel()
	if again := postgres.LetDown(4); !slices.IsSorted(again) {
		t.Errorf("they wait in the order %v", again)
	}
}
