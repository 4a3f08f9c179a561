package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// turn is one of several transactions that wait for admission.
type turn struct {
	ctx  context.Context // nil: the test's
	last store.Change
	run  func(ctx context.Context, tx pgx.Tx, found store.SwapResult) error // nil: it has an effect

	verdict store.Verdict
	err     error
	over    atomic.Bool // both are there
}

func (one *turn) atomic(t *testing.T, s *postgres.Store, first func()) {
	ctx := one.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	one.verdict, one.err = s.Atomic(ctx, one.last.To.ID, true, func(ctx context.Context, tx pgx.Tx, found store.SwapResult) (*store.Change, error) {
		first()
		if one.run != nil {
			return &one.last, one.run(ctx, tx, found)
		}
		if found.Busy { // there is no transaction
			return nil, nil
		}
		return &one.last, effect(ctx, tx, one.last.To.Key)
	})
	one.over.Store(true)
}

// runQueued runs transactions on a pool that admits one at a time: the others are
// started while the first one runs.
func runQueued(t *testing.T, s *postgres.Store, turns ...*turn) {
	t.Helper()
	var others sync.WaitGroup
	turns[0].atomic(t, s, func() {
		for _, one := range turns[1:] {
			others.Go(func() { one.atomic(t, s, func() {}) })
		}
	})
	others.Wait()
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
	return s, others
}

func mustCommit(t *testing.T, others *pgxpool.Pool, turns ...*turn) {
	t.Helper()
	for _, one := range turns {
		if one.verdict != store.Committed || one.err != nil {
			t.Errorf("turn %s: Atomic = %v, %v, want it committed", one.last.To.Key, one.verdict, one.err)
		}
		check.Equal(t, effects(t, others, one.last.To.Key), 1, "turn %s: effects", one.last.To.Key)
	}
}

// A transaction that waited for admission has the same settings as any other.
func TestQueuedTransactionsHaveTheSettings(t *testing.T) {
	t.Parallel()
	const seen = `SELECT concat_ws(' ', current_setting('transaction_isolation'), current_setting('enable_seqscan'),
current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'))`
	for level, want := range map[pgx.TxIsoLevel]string{
		pgx.ReadCommitted: "read committed on 10s 30s 30s", pgx.Serializable: "serializable on 10s 30s 30s",
	} {
		s, others := inTurns(t, postgres.Options{Isolation: level})
		turns := several(24)
		for _, one := range turns {
			one.run = func(ctx context.Context, tx pgx.Tx, found store.SwapResult) error {
				var got string
				if err := tx.QueryRow(ctx, seen).Scan(&got); err != nil || got != want || found.Token != (store.Token{}) {
					t.Errorf("turn %s sees %q, %v and %+v, want %q and no record", one.last.To.Key, got, err, found, want)
				}
				return effect(ctx, tx, one.last.To.Key)
			}
		}
		runQueued(t, s, turns...)
		mustCommit(t, others, turns...)
	}
}

// A caller that gives up while it waits for admission returns at once, and leaves
// nothing behind.
func TestQueuedCallerGivesUp(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	turns := several(2)
	first, gone := turns[0], turns[1]
	ctx, cancel := context.WithCancel(t.Context())
	gone.ctx = ctx
	gone.run = func(context.Context, pgx.Tx, store.SwapResult) error { t.Error("it is run"); return errHandler }
	first.atomic(t, s, func() {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			gone.atomic(t, s, func() {})
		}()
		cancel()
		<-ended
	})
	mustCommit(t, others, first)
	if gone.verdict != store.NotCommitted || !errors.Is(gone.err, context.Canceled) {
		t.Errorf("Atomic = %v, %v, want it cancelled", gone.verdict, gone.err)
	}
	mustBeFree(t, s, gone.last)
	check.Equal(t, one[int](t, others, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'`), 0, "sessions are in a transaction")
}

// A transaction that waited for admission sees the current record, and a record that
// another transaction holds.
func TestQueuedTransactionSeesTheCurrentRecord(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	elsewhere := newStore(t, others, postgres.Options{})
	turns := several(7)
	existing, busy := turns[3], turns[4]
	other := existing.last
	other.To.Owner = 2
	mustForce(t, elsewhere, other)
	var told, right store.SwapResult
	existing.run = func(_ context.Context, _ pgx.Tx, is store.SwapResult) error { told = is; return errHandler }
	busy.run = func(_ context.Context, _ pgx.Tx, is store.SwapResult) error { right = is; return errHandler }
	_, err := elsewhere.Atomic(t.Context(), busy.last.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
		runQueued(t, s, turns...)
		return nil, errHandler
	})
	if !errors.Is(err, errHandler) {
		t.Fatal(err)
	}
	if told.Token != other.To.Token || told.Record == nil || told.Record.Key != other.To.Key {
		t.Errorf("it sees %+v, want the current record", told)
	}
	if !right.Busy {
		t.Errorf("it sees %+v, want Busy", right)
	}
	mustCommit(t, others, turns[0], turns[1], turns[2], turns[5], turns[6])
	mustBeFree(t, s, busy.last)
}

// The failure of one transaction does not change those that wait behind it.
func TestQueuedTransactionsFailAlone(t *testing.T) {
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
	runQueued(t, s, turns...)
	mustCommit(t, others, turns[0], turns[1], turns[5])
	if fenced.verdict != store.NotCommitted || !errors.Is(fenced.err, store.ErrSuperseded) {
		t.Errorf("Atomic = %v, %v, want ErrSuperseded", fenced.verdict, fenced.err)
	}
	if refused.verdict != store.NotCommitted || refused.err == nil {
		t.Errorf("Atomic = %v, %v, want the refusal of its COMMIT", refused.verdict, refused.err)
	}
}

// A connection that is lost while one transaction commits does not change the others.
func TestQueuedTransactionLosesItsConnection(t *testing.T) {
	t.Parallel()
	url := database(t)
	others := connect(t, url)
	proxy := realtest.NewProxy(t, realtest.Postgres(t).Addr())
	s := newStore(t, connect(t, proxy.URL(url), func(c *pgxpool.Config) { c.MaxConns = 2 }), postgres.Options{})
	turns := several(6)
	lost := turns[3]
	var fault *realtest.Fault
	lost.run = func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) error {
		err := effect(ctx, tx, "3")
		fault = proxy.EatReply(realtest.SQL("COMMIT"))
		return err
	}
	runQueued(t, s, turns...)
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

// waitFor waits until a session waits for a lock of that type.
func waitFor(t *testing.T, others *pgxpool.Pool, of string) {
	t.Helper()
	for !one[bool](t, others, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = $1 AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`, of) {
		continue
	}
}
