package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// handlerCalls are the calls of a transaction, as an endless goroutine of a
// handler would make them.
func handlerCalls() map[string]func(ctx context.Context, tx pgx.Tx) error {
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
			const returning = insert + ` RETURNING key`
			results := tx.SendBatch(ctx, statements(returning, returning, returning))
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
	s, pool := open(t, postgres.Options{}, atMost(2))
	var left sync.WaitGroup
	for name, call := range handlerCalls() {
		for round := range 4 {
			key := fmt.Sprint(name, round)
			last := create(key, store.Succeeded, 1)
			began := make(chan struct{})
			verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
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
	s, pool := open(t, postgres.Options{StatementTimeout: -1, IdleInTransaction: -1}, atMost(2))
	for _, end := range []func(last *store.Change) (*store.Change, error){
		func(last *store.Change) (*store.Change, error) { return last, nil },
		func(*store.Change) (*store.Change, error) { return nil, errHandler },
		func(*store.Change) (*store.Change, error) { panic(errHandler) },
	} {
		last := create("key", store.Succeeded, 1)
		told := make(chan error, 1)
		verdict, err := recovering(func() (store.Verdict, error) {
			return whenFree(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				pid := pidOf(ctx, t, tx)
				go func() { told <- do(ctx, tx, `INSERT INTO effects VALUES ('left'); SELECT pg_sleep(600)`) }()
				until(t, pool, fmt.Sprintf(`SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event = 'PgSleep'`, pid))
				return end(&last)
			})
		})
		if verdict != store.NotCommitted || err == nil {
			t.Errorf("Atomic = %v, %v, want NotCommitted and an error", verdict, err)
		}
		check.Fails(t, <-told, "the call under way ends without an error")
		check.Equal(t, effects(t, pool, "left"), 0, "effects")
		proof := create("key", store.Pending, 2)
		check.Equal(t, settled(t, s, proof), proof.To.Token, "the current record") // also: the connections are back
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

// rows is a source without rows that blocks until end is closed.
type rows struct{ end chan struct{} }

func (r rows) Next() bool {
	<-r.end
	return false
}
func (rows) Values() ([]any, error) { return nil, nil }
func (rows) Err() error             { return nil }

// An abandoned call that never ends does not block other callers.
func TestAbandonedCallThatNeverEnds(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{}, atMost(2))
	last := create("key", store.Succeeded, 1)
	source, ended := rows{make(chan struct{})}, make(chan error, 1)
	verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		go func() {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"key"}, source)
			ended <- err
		}()
		until(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'ClientRead' AND query ILIKE 'copy%'`)
		return nil, errHandler
	})
	check.ResultIs(verdict, err)(t, store.NotCommitted, errHandler, "Atomic (want NotCommitted and the handler's error)")
	mustBeFree(t, s, last)
	close(source.end)
	check.Fails(t, <-ended, "the call left behind ends without an error")
}
