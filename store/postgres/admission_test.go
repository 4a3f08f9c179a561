package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// More handlers than there are connections wait for each other, and calls
// of the store outside of their transactions are answered.
func TestMoreHandlersThanConnections(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{}, atMost(3))
	var all sync.WaitGroup
	for _, c := range batch("many", 30) {
		all.Go(func() {
			last := c
			verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				_, err := s.Get(ctx, []store.ID{last.To.ID})
				return &last, errors.Join(err, effect(ctx, tx, "key"))
			})
			check.Result(verdict, err)(t, store.Committed, "Atomic")
		})
	}
	all.Wait()
	check.Equal(t, effects(t, pool, "key"), 30, "effects")
	// No call waits longer than its context lasts, for a right or a connection.
	held := make(chan struct{})
	for range 2 {
		all.Go(func() {
			_, err := s.Atomic(t.Context(), store.ID{}, false, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
				<-held
				return nil, errHandler
			})
			if !errors.Is(err, errHandler) {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for range 3 { // at least one of them finds no free connection in time
		verdict, err := s.Atomic(ctx, store.ID{1}, false, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		check.ResultIs(verdict, err)(t, store.NotCommitted, context.DeadlineExceeded, "Atomic without a free connection (want NotCommitted and the context's error)")
	}
	close(held)
	all.Wait()
}

// Batches that wait for a locked row leave a connection for other calls.
func TestBatchesLeaveAConnection(t *testing.T) {
	t.Parallel()
	const conns, batches = 3, 6
	s, pool := open(t, postgres.Options{}, atMost(conns))
	other := connect(t, pool.Config().ConnString())
	mustExec(t, other, `INSERT INTO effects VALUES ('row')`)
	tx := check.Must(other.Begin(t.Context()))(t)
	defer tx.Rollback(context.Background()) //nolint:errcheck // it may be over
	mustExec(t, tx, `UPDATE effects SET key = key`)
	done := make(chan store.Verdict, batches)
	for i := range batches {
		go func() {
			_, verdict, _ := s.AtomicBatch(t.Context(), create(string(rune('a'+i)), store.Succeeded, 1), true, statements(`UPDATE effects SET key = key`))
			done <- verdict
		}()
	}
	until(t, other, fmt.Sprintf(`SELECT (count(*) >= %d)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`, conns-1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		c := create(fmt.Sprint("beside ", i), store.InProgress, 1)
		if answers, err := s.Swap(ctx, []store.Change{c}); err != nil || !answers[0].Applied(c) {
			t.Fatalf("Swap beside batches that wait = %+v, %v, want it applied", answers, err)
		}
	}
	check.Require(t, tx.Rollback(t.Context()))
	for range batches {
		check.Equal(t, <-done, store.Committed, "AtomicBatch that waited")
	}
}

// TestStoresOfOnePool leave one connection free together, for what their handlers ask the
// pool.
func TestStoresOfOnePool(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), atMost(4))
	stores := []*postgres.Store{newStore(t, pool, postgres.Options{}), newStore(t, pool, postgres.Options{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of what would wait for ever
	defer cancel()
	var all sync.WaitGroup
	for n, c := range batch("shared", 12) {
		all.Go(func() {
			last := c
			verdict, err := stores[n%2].Atomic(ctx, last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				_, err := tx.Exec(ctx, `SELECT pg_sleep(0.1)`) // the others begin meanwhile
				var one int
				return &last, errors.Join(err, pool.QueryRow(ctx, `SELECT 1`).Scan(&one))
			})
			check.Result(verdict, err)(t, store.Committed, "Atomic")
		})
	}
	all.Wait()
}

func engineOver(t *testing.T, s *postgres.Store, o semel.Options) *semel.Engine[pgx.Tx] {
	t.Helper()
	o.Survive = store.NoFailure
	e := check.Must(semel.New(s, o))(t)
	return e
}

// TestTransactionWithinOneOfThePool is refused, also where another engine and another store
// open it; of another pool it is not.
func TestTransactionWithinOneOfThePool(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool, other := connect(t, url), connect(t, url)
	s := newStore(t, pool, postgres.Options{})
	outer := engineOver(t, s, semel.Options{})
	op := semel.Define("op", semel.OperationOptions[string]{})
	write := func(ctx context.Context, tx pgx.Tx) (string, error) { return "v", effect(ctx, tx, "key") }
	_, _, err := semel.DoTx(t.Context(), outer, op.Call(semel.Shared(), "outer", "in"), func(ctx context.Context, tx pgx.Tx) (string, error) {
		for name, inner := range map[string]*postgres.Store{"the store": s, "another store": newStore(t, pool, postgres.Options{})} {
			call := op.Call(semel.Shared(), "inner of "+name, "in")
			if _, _, err := semel.DoTx(ctx, engineOver(t, inner, semel.Options{}), call, write); !errors.Is(err, semel.ErrInvalid) {
				t.Errorf("DoTx of %s within DoTx = %v, want ErrInvalid", name, err)
			}
		}
		elsewhere := engineOver(t, newStore(t, other, postgres.Options{}), semel.Options{})
		_, _, err := semel.DoTx(ctx, elsewhere, op.Call(semel.Shared(), "elsewhere", "in"), write)
		return "v", err
	})
	if err != nil {
		t.Errorf("DoTx = %v, want success", err)
	}
}

// TestTransactionThatWaitsForItsCaller: a function that calls DoTx with a context that is
// not its own cannot be seen to be within a transaction. When its callers hold all
// connections, the inner transactions give up after RecordTimeout, and the key is free.
func TestTransactionThatWaitsForItsCaller(t *testing.T) {
	t.Parallel()
	const conns = 4
	s, _ := open(t, postgres.Options{}, atMost(conns))
	op := semel.Define("op", semel.OperationOptions[string]{})
	var failed chan error
	// RecordTimeout bounds the callers' own transactions too. If one did not begin, which happens
	// on a slow machine, the others did not hold all connections: the test tries again, with other
	// keys and twice the time.
	for bound, held := time.Second, int32(0); held < conns-1; bound *= 2 {
		e := engineOver(t, s, semel.Options{RecordTimeout: bound})
		var all, hold sync.WaitGroup
		hold.Add(conns - 1)
		var began atomic.Int32
		failed = make(chan error, conns)
		for n := range conns - 1 {
			all.Go(func() {
				var first sync.Once
				call := op.Call(semel.Shared(), fmt.Sprint("outer ", n, bound), "in")
				_, _, err := semel.DoTx(t.Context(), e, call, func(context.Context, pgx.Tx) (string, error) {
					first.Do(func() { began.Add(1); hold.Done() })
					hold.Wait()
					inner := op.Call(semel.Shared(), fmt.Sprint("inner ", n, bound), "in")
					_, _, err := semel.DoTx(t.Context(), e, inner, func(context.Context, pgx.Tx) (string, error) { return "v", nil })
					return "v", err
				})
				first.Do(hold.Done)
				failed <- err
			})
		}
		all.Wait()
		close(failed)
		if held = began.Load(); held < conns-1 && bound > time.Minute {
			t.Fatalf("%d callers began, want %d", held, conns-1)
		}
	}
	var unavailable int
	for err := range failed {
		if errors.Is(err, semel.ErrUnavailable) || err != nil && strings.Contains(err.Error(), "RecordTimeout") {
			unavailable++
		} else if err != nil {
			t.Errorf("DoTx = %v, want ErrUnavailable", err)
		}
	}
	if unavailable == 0 {
		t.Error("no caller received the error of a transaction that did not begin")
	}
	e := engineOver(t, s, semel.Options{})
	if _, _, err := semel.DoTx(t.Context(), e, op.Call(semel.Shared(), "stranger", "in"), func(context.Context, pgx.Tx) (string, error) { return "v", nil }); err != nil {
		t.Errorf("the next DoTx = %v, want success", err)
	}
}

// TestBeginThatHasNoConnection: each way to run a transaction gives up after RecordTimeout
// when the program uses all connections of the pool itself, and says so. DoTx does when the
// server is silent, too; what DoBatch sends has the longer bound of its statements.
func TestBeginThatHasNoConnection(t *testing.T) {
	t.Parallel()
	server := realtest.Postgres(t)
	proxy := realtest.NewProxy(t, server.Addr())
	url := server.Database(t)
	pool := connect(t, proxy.URL(url), atMost(2))
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	s := newStore(t, pool, postgres.Options{})
	// succeeds repeats a call with free connections, which a slow machine may not give it in time.
	succeeds := func(what string, call func() error) {
		t.Helper()
		realtest.Poll(t, what, func() bool {
			err := call()
			if !errors.Is(err, semel.ErrUnavailable) {
				check.Require(t, err, what)
			}
			return err == nil
		})
	}
	var e *semel.Engine[pgx.Tx]
	succeeds("New", func() (err error) {
		e, err = semel.New(s, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Second})
		return err
	})
	inline := semel.Define("inline", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "in")
	batched := semel.Define("batched", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "in")
	ways := map[string]func() error{
		"DoTx": func() error {
			_, _, err := semel.DoTx(t.Context(), e, inline, func(context.Context, pgx.Tx) (string, error) { return "v", nil })
			return err
		},
		"DoBatch": func() error {
			_, _, err := semel.DoBatch(t.Context(), e, batched, func(context.Context) (string, *pgx.Batch, error) { return "v", nil, nil })
			return err
		},
	}
	var taken []*pgxpool.Conn
	for range 2 {
		c := check.Must(pool.Acquire(t.Context()))(t)
		taken = append(taken, c)
	}
	for name, run := range ways {
		if err := run(); !errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), "all 2 connections of the pool in use") {
			t.Errorf("%s = %v, want ErrUnavailable that says that all connections are in use", name, err)
		}
	}
	for _, c := range taken {
		c.Release()
	}
	for name, run := range ways {
		succeeds(name+" with free connections", run)
	}
	proxy.BlackHole(true)
	defer proxy.BlackHole(false) // for the pool, which waits for its connections as it closes
	silent := semel.Define("silent", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "in")
	_, _, err := semel.DoTx(t.Context(), e, silent, func(context.Context, pgx.Tx) (string, error) { return "v", nil })
	check.ErrorIs(t, err, semel.ErrUnavailable, "DoTx with a silent server")
}
