package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// sqlRun is a handler.
type sqlRun = func(ctx context.Context, tx *sql.Tx) (*store.Change, error)

func atomicSQL(t *testing.T, s *postgres.SQLStore, id store.ID, run sqlRun) (store.Verdict, error) {
	t.Helper()
	return s.Atomic(t.Context(), id, true, func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
		return run(ctx, tx)
	})
}

// Only the results of a handler end its transaction: Commit and Rollback are refused, and
// a transaction that SQL has ended is reported.
func TestSQLHandlerCannotEnd(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := openSQL(t, url, pgx.QueryExecModeCacheStatement)
	s, pool := newSQLStore(t, db, postgres.Options{}), connect(t, url)
	for name, row := range map[string]struct {
		run     func(ctx context.Context, tx *sql.Tx, key string) error
		want    store.Verdict
		is      error
		effects int
	}{
		"deferred rollback": {func(ctx context.Context, tx *sql.Tx, key string) error {
			defer func() { _ = tx.Rollback() }()
			return sqlEffect(ctx, tx, key)
		}, store.Committed, nil, 1},
		"refused commit": {func(ctx context.Context, tx *sql.Tx, key string) error {
			return errors.Join(sqlEffect(ctx, tx, key), tx.Commit())
		}, store.NotCommitted, postgres.ErrEnded, 0},
		"after a refused commit": {func(ctx context.Context, tx *sql.Tx, key string) error {
			_ = tx.Commit()
			return sqlEffect(ctx, tx, key)
		}, store.NotCommitted, sql.ErrTxDone, 0},
		"commit as text": {func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `COMMIT`)
			return errors.Join(err, sqlEffect(ctx, tx, key))
		}, store.Committed, store.ErrTxEndedByHandler, 0},
		"commit as text that is ignored": {func(ctx context.Context, tx *sql.Tx, key string) error {
			err := sqlEffect(ctx, tx, key)
			_, _ = tx.ExecContext(ctx, `COMMIT`)
			return err
		}, store.Committed, postgres.ErrEnded, 1},
		"aborted": {func(ctx context.Context, tx *sql.Tx, key string) error {
			_, _ = tx.ExecContext(ctx, `SELECT 1 / 0`)
			return nil
		}, store.NotCommitted, nil, 0},
		"hidden conflict": {func(ctx context.Context, tx *sql.Tx, key string) error {
			_, _ = tx.ExecContext(ctx, `DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40001'; END $$`)
			return errHandler
		}, store.NotCommitted, store.ErrConflict, 0},
		"savepoint": {func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `SAVEPOINT a`)
			_, failed := tx.ExecContext(ctx, `SELECT 1 / 0`)
			_, undone := tx.ExecContext(ctx, `ROLLBACK TO SAVEPOINT a`)
			check.Fails(t, failed, "a division by zero does not fail")
			return errors.Join(err, undone, sqlEffect(ctx, tx, key))
		}, store.Committed, nil, 1},
		"open rows": {func(ctx context.Context, tx *sql.Tx, key string) error {
			rows, err := tx.QueryContext(ctx, `SELECT generate_series(1, 100000)`)
			if err == nil && rows.Next() {
				return rows.Err()
			}
			return err
		}, store.NotCommitted, nil, 0},
	} {
		last := create(name, store.Succeeded, 1)
		verdict, err := atomicSQL(t, s, last.To.ID, func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
			if err := row.run(ctx, tx, name); err != nil {
				return nil, err
			}
			return &last, nil
		})
		if verdict != row.want || row.is != nil && !errors.Is(err, row.is) || (err == nil) != (row.is == nil && verdict == store.Committed) {
			t.Errorf("%s: Atomic = %v, %v, want %v, %v", name, verdict, err, row.want, row.is)
		}
		check.Equal(t, effects(t, pool, name), row.effects, "%s: effects", name)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are in use after the transactions", n)
	}
}

// What database/sql offers within a transaction works, except for statements that were
// prepared on the database: they are refused, and the transaction goes on.
func TestSQLStatements(t *testing.T) {
	t.Parallel()
	db := openSQL(t, database(t), pgx.QueryExecModeCacheStatement)
	s := newSQLStore(t, db, postgres.Options{})
	onDB, err := db.PrepareContext(t.Context(), `SELECT 1`)
	check.Require(t, err)
	defer onDB.Close()
	last := create("key", store.Succeeded, 1)
	verdict, err := atomicSQL(t, s, last.To.ID, func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
		if _, err := tx.StmtContext(ctx, onDB).ExecContext(ctx); err == nil {
			t.Error("a statement that was prepared on the database is accepted")
		}
		insert, err := tx.PrepareContext(ctx, `INSERT INTO effects (key) VALUES ($1)`)
		if err != nil {
			return nil, err
		}
		for i := range 3 {
			if _, err := insert.ExecContext(ctx, fmt.Sprint(i)); err != nil {
				return nil, err
			}
		}
		rows, err := tx.QueryContext(ctx, `SELECT key, length(key) AS n FROM effects ORDER BY key`)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		types, err := rows.ColumnTypes()
		if err != nil || len(types) != 2 || types[0].DatabaseTypeName() != "TEXT" {
			t.Errorf("ColumnTypes = %v, %v", types, err)
		}
		var keys []string
		for rows.Next() {
			var key string
			var n int
			if err := rows.Scan(&key, &n); err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
		if len(keys) != 3 {
			t.Errorf("the rows are %v, want 3", keys)
		}
		read, err := tx.PrepareContext(ctx, `SELECT count(*) FROM effects WHERE key = ANY ($1)`)
		if err != nil {
			return nil, err
		}
		var n int
		if err := read.QueryRowContext(ctx, keys).Scan(&n); err != nil || n != 3 {
			t.Errorf("a prepared query = %d, %v, want 3", n, err)
		}
		return &last, errors.Join(rows.Err(), insert.Close(), read.Close())
	})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
}

// A call that is running when the handler has returned is interrupted. Its connection is
// closed when the call has ended.
func TestSQLAbandonedCall(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := openSQL(t, url, pgx.QueryExecModeCacheStatement)
	db.SetMaxOpenConns(2)
	s, pool := newSQLStore(t, db, postgres.Options{StatementTimeout: -1, IdleInTransaction: -1}), connect(t, url)
	last := create("key", store.Succeeded, 1)
	var left sync.WaitGroup
	verdict, err := atomicSQL(t, s, last.To.ID, func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
		var pid int32
		if err := tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return nil, err
		}
		left.Go(func() {
			_, err := tx.ExecContext(context.WithoutCancel(ctx), `INSERT INTO effects VALUES ('left'); SELECT pg_sleep(600)`)
			_, again := tx.ExecContext(context.WithoutCancel(ctx), `INSERT INTO effects VALUES ('left')`)
			if err == nil || again == nil {
				t.Errorf("the call under way ends with %v, the next one with %v, want errors", err, again)
			}
		})
		for !one[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep')`, pid) {
			continue
		}
		return &last, nil
	})
	if verdict != store.NotCommitted || err == nil {
		t.Errorf("Atomic = %v, %v, want NotCommitted and an error", verdict, err)
	}
	left.Wait()
	check.Equal(t, db.Stats().InUse, 0, "connections are in use")
	next := create("next", store.Succeeded, 1)
	verdict, err = atomicSQL(t, s, next.To.ID, func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
		return &next, sqlEffect(ctx, tx, "next")
	})
	if n := effects(t, pool, "left"); verdict != store.Committed || err != nil || n != 0 {
		t.Errorf("the next Atomic = %v, %v, %d effects of the call", verdict, err, n)
	}
}

// SwapTx works in a transaction that the caller has begun on the database.
func TestSQLSwapTxOfCaller(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := openSQL(t, url, pgx.QueryExecModeCacheStatement)
	s, pool := newSQLStore(t, db, postgres.Options{}), connect(t, url)
	there := create("there", store.Pending, 1)
	mustForce(t, s, there)
	for name, end := range map[string]func(tx *sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		tx, err := db.BeginTx(t.Context(), nil)
		check.Require(t, err)
		queued, second := create(name, store.Pending, 1), create("there", store.Pending, 2)
		answers, err := s.SwapTx(t.Context(), tx, []store.Change{queued, second})
		if err != nil || !answers[0].Applied(queued) || answers[1].Token != there.To.Token {
			t.Errorf("SwapTx = %+v, %v, want the first applied and the second not", answers, err)
		}
		check.NoError(t, errors.Join(sqlEffect(t.Context(), tx, name), end(tx)))
		if got, n := current(t, s, queued), effects(t, pool, name); (got == queued.To.Token) != (name == "commit") || (n == 1) != (name == "commit") {
			t.Errorf("after the %s, %+v is current, with %d effects", name, got, n)
		}
		if _, err := s.SwapTx(t.Context(), tx, []store.Change{queued}); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("SwapTx after the end = %v, want ErrTxDone", err)
		}
	}
}
