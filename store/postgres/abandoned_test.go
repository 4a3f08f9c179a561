package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// everything is each call that a transaction has, as an endless goroutine of a
// handler would make it.
func everything() map[string]func(ctx context.Context, tx pgx.Tx) error {
	const insert = `INSERT INTO effects VALUES ('left')`
	return map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Exec": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert)
			return err
		},
		"QueryRow": func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, insert+` RETURNING key`).Scan(new(string))
		},
		"Query": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `INSERT INTO effects SELECT 'left' FROM generate_series(1, 100) RETURNING key`)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				_, scanned, _ := rows.Scan(new(string)), rows.FieldDescriptions(), rows.RawValues()
				if _, err := rows.Values(); err != nil || len(scanned) == 0 {
					return errors.Join(err, rows.Err())
				}
			}
			return rows.Err()
		},
		"SendBatch": func(ctx context.Context, tx pgx.Tx) error {
			var b pgx.Batch
			for range 3 {
				b.Queue(insert + ` RETURNING key`)
			}
			results := tx.SendBatch(ctx, &b)
			_, err := results.Exec()
			err = errors.Join(err, results.QueryRow().Scan(new(string)))
			rows, queried := results.Query()
			for queried == nil && rows.Next() {
				queried = rows.Err()
			}
			return errors.Join(err, queried, results.Close())
		},
		"CopyFrom": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"key"}, pgx.CopyFromRows([][]any{{"left"}}))
			return err
		},
		"Prepare": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Prepare(ctx, "", insert)
			return err
		},
		"Begin": func(ctx context.Context, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
				_, err := inner.Exec(ctx, insert)
				return err
			})
		},
	}
}

// A goroutine that the handler leaves behind, as http.TimeoutHandler does, uses the
// transaction until it is refused. None of its statements gets into another
// transaction, and the connections can be used again.
func TestAbandonedGoroutine(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	var left sync.WaitGroup
	for name, call := range everything() {
		for round := range 4 {
			key := fmt.Sprint(name, round)
			last := create(key, store.Succeeded, 1)
			began := make(chan struct{})
			verdict, err := s.Atomic(t.Context(), last.To.ID, true,
				func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
					left.Go(func() {
						err := call(ctx, tx)
						close(began)
						for err == nil {
							err = call(ctx, tx)
						}
						check.ErrorIs(t, call(ctx, tx), postgres.ErrEnded, "%s: after %v a call of the transaction that is over", name, err)
					})
					<-began
					return nil, errHandler
				})
			check.ResultIs(verdict, err)(t, store.NotCommitted, errHandler, "%s: Atomic (want NotCommitted and the handler's error)", name)
			next := create(key, store.Succeeded, 2)
			verdict, err = whenFree(t, s, next.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return &next, effect(ctx, tx, key)
			})
			check.Equal(t, verdict, store.Committed, "%s: the next Atomic: %v", name, err)
		}
	}
	left.Wait()
	check.Equal(t, effects(t, pool, "left"), 0, "effects of goroutines left behind")
}

// A call that is running when the handler has returned is interrupted, and no
// caller waits for it.
func TestAbandonedCall(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{StatementTimeout: -1, IdleInTransaction: -1})
	for _, end := range []func(last *store.Change) (*store.Change, error){
		func(last *store.Change) (*store.Change, error) { return last, nil },
		func(*store.Change) (*store.Change, error) { return nil, errHandler },
		func(*store.Change) (*store.Change, error) { panic(errHandler) },
	} {
		last := create("key", store.Succeeded, 1)
		told := make(chan error, 1)
		verdict, err := recovering(func() (store.Verdict, error) {
			return whenFree(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				pid := tx.Conn().PgConn().PID()
				go func() { told <- do(ctx, tx, `INSERT INTO effects VALUES ('left'); SELECT pg_sleep(600)`) }()
				for !one[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep')`, pid) {
					continue
				}
				return end(&last)
			})
		})
		if verdict != store.NotCommitted || err == nil {
			t.Errorf("Atomic = %v, %v, want NotCommitted and an error", verdict, err)
		}
		check.Fails(t, <-told, "the call under way ends without an error")
		check.Equal(t, effects(t, pool, "left"), 0, "effects")
		proof := create("key", store.Pending, 2)
		if got := settled(t, s, proof); got != proof.To.Token { // also: the connections are back
			t.Errorf("the current record is %+v, want the certificate", got)
		}
		mustExec(t, pool, `DELETE FROM semel_records`)
	}
}

func recovering(run func() (store.Verdict, error)) (verdict store.Verdict, err error) {
	verdict = store.NotCommitted
	defer func() {
		if value := recover(); value != nil {
			if err, _ = value.(error); !errors.Is(err, errHandler) {
				panic(value)
			}
		}
	}()
	return run()
}

// A second call while the first result is being read is refused, as pgx does.
func TestTwoResultsAtOnce(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			rows, err := tx.Query(ctx, `SELECT generate_series(1, 3)`)
			if err != nil {
				return nil, err
			}
			check.Fails(t, effect(ctx, tx, "key"), "a statement while rows are read")
			n, err := pgx.CollectRows(rows, pgx.RowTo[int])
			if err != nil || len(n) != 3 {
				t.Errorf("the rows are %v, %v, want all", n, err)
			}
			return &last, effect(ctx, tx, "key")
		})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
}
