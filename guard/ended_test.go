package guard_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
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
				must(0, d.execTx(ctx, tx, `CREATE TABLE IF NOT EXISTS extra (id INT)`))
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
				if replayed != (key == "b") {
					t.Errorf("%s: replayed %v", key, replayed)
				}
				if err == nil {
					err = d.addEffect(ctx, tx, key)
				}
				return receipt{7, key}, err
			})
		})
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		w.want(key)
	}
}
