package guard_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestRowsOfATransactionThatWasEnded: on MariaDB a CREATE TABLE commits the transaction.
// What the function did before is committed without a guard row, so nothing is claimed
// about it, whether the function returns an error or not.
func TestRowsOfATransactionThatWasEnded(t *testing.T) {
	t.Parallel()
	d := onMariaDB(t)
	w := newApart(t, d, false)
	for key, ends := range map[string]error{"a": nil, "b": errRefused} {
		_, _, err := semel.Do(t.Context(), w.e, w.call(key), func(ctx context.Context) (receipt, error) {
			return w.rows.InTx(ctx, func(ctx context.Context, tx *sql.Tx) (receipt, error) {
				must(0, d.addEffect(ctx, tx, key))
				must(0, d.ExecTx(ctx, tx, `CREATE TABLE IF NOT EXISTS extra (id INT)`))
				return receipt{7, key}, ends
			})
		})
		if err == nil || semel.VerdictOf(err) != store.Unknown {
			t.Errorf("%s: %v, want an unknown outcome", key, err)
		}
		if n := d.count("effects", key); n != 1 {
			t.Errorf("%s has %d effects; this test must show that they are committed", key, n)
		}
	}
}

// TestFunctionThatCommits: the function commits the transaction itself and returns an
// error. Its effect is there, so the error must not say that nothing was committed.
func TestFunctionThatCommits(t *testing.T) {
	t.Parallel()
	onAll(t, suite{
		sql: func(t *testing.T, d *domain[*sql.Tx]) {
			functionThatCommits(t, d, func(_ context.Context, tx *sql.Tx) error { return tx.Commit() })
		},
		pgx: func(t *testing.T, d *domain[pgx.Tx]) {
			functionThatCommits(t, d, func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) })
		},
	})
}

func functionThatCommits[Tx any](t *testing.T, d *domain[Tx], commit func(context.Context, Tx) error) {
	t.Helper()
	w := newApart(t, d, false)
	for key, returned := range map[string]error{"a": errRefused, "b": semel.Final(errRefused), "c": semel.NotCommitted(errRefused)} {
		_, _, err := semel.Do(t.Context(), w.e, w.call(key), func(ctx context.Context) (receipt, error) {
			return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
				must(0, d.addEffect(ctx, tx, key))
				must(0, commit(ctx, tx))
				return receipt{}, returned
			})
		})
		if err == nil || semel.VerdictOf(err) != store.Unknown {
			t.Errorf("%s: got %v, want an unknown outcome", key, err)
		}
		if n := d.count("effects", key); n != 1 {
			t.Errorf("%s has %d effects; this test must show that the effect is committed", key, n)
		}
	}
}

// TestInsertWithinRows: savepoints of Insert nest in the transaction of InTx.
func TestInsertWithinRows(t *testing.T) {
	t.Parallel()
	onAll(t, suite{sql: insertWithinRows[*sql.Tx], pgx: insertWithinRows[pgx.Tx]})
}

func insertWithinRows[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	w := newApart(t, d, false)
	for _, key := range []string{"a", "b"} {
		_, _, err := semel.Do(t.Context(), w.e, w.call(key), func(ctx context.Context) (receipt, error) {
			return w.rows.InTx(ctx, func(ctx context.Context, tx Tx) (receipt, error) {
				_, replayed, err := guard.Insert(ctx, d.of(tx), newUser(d, user{"ann", "ann@example.com", key}))
				check.Equal(t, replayed, (key == "b"), "%s: replayed", key)
				if err == nil {
					err = d.addEffect(ctx, tx, key)
				}
				return receipt{7, key}, err
			})
		})
		check.NoError(t, err, "%s", key)
		w.want(key)
	}
}
