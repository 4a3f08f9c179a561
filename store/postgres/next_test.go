package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// turn is a transaction of several that wait for each other.
type turn struct {
	ctx  context.Context // nil: the test's
	last store.Change
	run  func(ctx context.Context, tx pgx.Tx, stands store.SwapResult) error // nil: it has an effect

	verdict store.Verdict
	err     error
	over    atomic.Bool // both are there
}

func (one *turn) atomic(t *testing.T, s *postgres.Store, first func()) {
	ctx := one.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	one.verdict, one.err = s.Atomic(ctx, one.last.To.ID, true, func(ctx context.Context, tx pgx.Tx, stands store.SwapResult) (*store.Change, error) {
		first()
		if one.run != nil {
			return &one.last, one.run(ctx, tx, stands)
		}
		if stands.Busy { // there is no transaction
			return nil, nil
		}
		return &one.last, effect(ctx, tx, one.last.To.Key)
	})
	one.over.Store(true)
}

// inTurn runs them one after the other: all wait while the first one runs. From the
// third one on, each begins where another ends.
func sortRanked(t *testing.T, s *postgres.Store, turns ...*turn) {
	t.Helper()
	done := make(chan struct{})
	turns[0].atomic(t, s, func() {
		for i, one := range turns[1:] {
			go func() {
				defer func() { done <- struct{}{} }()
				one.atomic(t, s, func() {})
			}()
			for s.Waiting() <= i {
				continue
			}
		}
	})
	for range turns[1:] {
		<-done
	}
}

// several are turns that have an effect each.
func several(n int) []*turn {
	turns := make([]*turn, n)
	for i := range turns {
		turns[i] = &turn{last: create(fmt.Sprint(i), store.Succeeded, 1)}
	}
	return turns
}

// inTurns is a store on whose pool one transaction runs at a time.
func inTurns(t *testing.T, o postgres.Options) (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	url := database(t)
	others := connect(t, url)
	s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 }), o)
	s.SetKeptFor(time.Hour)
	return s, others
}

func mustCommit(t *testing.T, others *pgxpool.Pool, turns ...*turn) {
	t.Helper()
	for _, one := range turns {
		if one.verdict != store.Committed || one.err != nil {
			t.Errorf("turn %s: Atomic = %v, %v, want it committed", one.last.To.Key, one.verdict, one.err)
		}
		if got := effects(t, others, one.last.To.Key); got != 1 {
			t.Errorf("turn %s has %d effects, want 1", one.last.To.Key, got)
		}
	}
}

// The transaction of a waiting caller begins where another one ends, and is like
// any other.
func TestNextBeginsWhereOneEnds(t *testing.T) {
	t.Parallel()
	const seen = `SELECT concat_ws(' ', current_setting('transaction_isolation'), current_setting('enable_seqscan'),
current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'))`
	for level, want := range map[pgx.TxIsoLevel]string{
		pgx.ReadCommitted: "read committed on 10s 30s 30s", pgx.Serializable: "serializable on 10s 30s 30s",
	} {
		s, others := inTurns(t, postgres.Options{Isolation: level})
		turns := several(24)
		for _, one := range turns {
			one.run = func(ctx context.Context, tx pgx.Tx, stands store.SwapResult) error {
				var got string
				if err := tx.QueryRow(ctx, seen).Scan(&got); err != nil || got != want || stands.Token != (store.Token{}) {
					t.Errorf("turn %s sees %q, %v and %+v, want %q and nothing", one.last.To.Key, got, err, stands, want)
				}
				return effect(ctx, tx, one.last.To.Key)
			}
		}
		before := s.Pool().Stat().AcquireCount()
		sortRanked(t, s, turns...)
		mustCommit(t, others, turns...)
		if got := s.Pool().Stat().AcquireCount() - before; got != 2+1 { // the tables were looked for as well
			t.Errorf("%s: %d turns have taken a connection %d times, want 3", level, len(turns), got)
		}
	}
}

// A connection that was kept for long enough goes back to the pool.
func TestConnectionGoesBack(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	s.SetKeptFor(0)
	turns := several(9)
	before := s.Pool().Stat().AcquireCount()
	sortRanked(t, s, turns...)
	mustCommit(t, others, turns...)
	if got := s.Pool().Stat().AcquireCount() - before; got != 9+1 {
		t.Errorf("%d turns have taken a connection %d times, want 10", len(turns), got)
	}
}

// The current record, and a right that another transaction has, are reported as at
// any other begin.
func TestNextIsToldWhatStands(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	elsewhere := newStore(t, others, postgres.Options{})
	turns := several(7)
	stands, busy := turns[3], turns[4]
	other := stands.last
	other.To.Owner = 2
	mustForce(t, elsewhere, other)
	var told, right store.SwapResult
	stands.run = func(_ context.Context, _ pgx.Tx, is store.SwapResult) error { told = is; return errHandler }
	busy.run = func(_ context.Context, _ pgx.Tx, is store.SwapResult) error { right = is; return errHandler }
	_, err := elsewhere.Atomic(t.Context(), busy.last.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
		sortRanked(t, s, turns...)
		return nil, errHandler
	})
	if !errors.Is(err, errHandler) {
		t.Fatal(err)
	}
	if told.Token != other.To.Token || told.Record == nil || told.Record.Key != other.To.Key {
		t.Errorf("told %+v, want what stands", told)
	}
	if !right.Busy {
		t.Errorf("told %+v, want Busy", right)
	}
	mustCommit(t, others, turns[0], turns[1], turns[2], turns[5], turns[6])
	mustBeFree(t, s, busy.last)
}

// What one fails with is its own, and the next one goes on.
func TestOneFailsAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	trigger(t, others, `IF NEW.key = '3' THEN RAISE 'refused'; END IF`)
	turns := several(6)
	fenced, refused, rolledBack := turns[2], turns[3], turns[4]
	fenced.run = func(context.Context, pgx.Tx, store.SwapResult) error {
		other := fenced.last
		other.To.Owner = 2
		mustForce(t, newStore(t, others, postgres.Options{}), other)
		return nil
	}
	rolledBack.run = func(context.Context, pgx.Tx, store.SwapResult) error { return errHandler }
	rolledBack.last.To.State = store.Failed
	sortRanked(t, s, turns...)
	mustCommit(t, others, turns[0], turns[1], turns[5])
	if fenced.verdict != store.NotCommitted || !errors.Is(fenced.err, store.ErrSuperseded) {
		t.Errorf("Atomic = %v, %v, want ErrSuperseded", fenced.verdict, fenced.err)
	}
	if refused.verdict != store.NotCommitted || refused.err == nil {
		t.Errorf("Atomic = %v, %v, want the refusal of its COMMIT", refused.verdict, refused.err)
	}
}

// A connection that is lost while one ends, and with it what it was to begin, is told to
// that one alone.
func TestConnectionLostBetweenTwo(t *testing.T) {
	t.Parallel()
	url := database(t)
	others := connect(t, url)
	proxy := realtest.NewProxy(t, realtest.Postgres(t).Addr())
	s := newStore(t, connect(t, proxy.URL(url), func(c *pgxpool.Config) { c.MaxConns = 2 }), postgres.Options{})
	s.SetKeptFor(time.Hour)
	turns := several(6)
	lost := turns[3]
	var fault *realtest.Fault
	lost.run = func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) error {
		err := effect(ctx, tx, "3")
		fault = proxy.EatReply(realtest.SQL("COMMIT AND CHAIN"))
		return err
	}
	sortRanked(t, s, turns...)
	fault.Wait(t)
	if lost.verdict != store.Unknown || lost.err == nil {
		t.Errorf("Atomic = %v, %v, want Unknown", lost.verdict, lost.err)
	}
	for _, one := range turns[4:] { // the server may not know yet that the connection is lost
		if errors.Is(one.err, postgres.ErrBusy) {
			one.verdict, one.err = whenFree(t, s, one.last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return &one.last, effect(ctx, tx, one.last.To.Key)
			})
		}
	}
	mustCommit(t, others, append(turns[:3], turns[4:]...)...)
}
