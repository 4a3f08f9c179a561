package doctest_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// onPostgresSQL contains the fragment of the README and of docs/recipes/orm.md.
func onPostgresSQL(ctx context.Context, databaseURL string) (*sql.DB, *semel.Engine[*sql.Tx]) {
	db := must(sql.Open("pgx", databaseURL)) // import _ "github.com/jackc/pgx/v5/stdlib"
	db.SetMaxOpenConns(20)
	must(0, pgmigrate.UpSQL(ctx, db, pgmigrate.Options{}))
	engine := must(semel.New(must(postgres.NewSQL(db, postgres.Options{})), semel.Options{}))
	return db, engine
}

var errUnknownItem = errors.New("unknown item")

type (
	itemOrder struct {
		Item   string
		Amount int
	}
	placedOrder struct {
		ID     int64
		Item   string
		Amount int
	}
)

// placing contains the second fragment of docs/recipes/orm.md.
func placing(ctx context.Context, engine *semel.Engine[*sql.Tx], placeOrder *semel.Operation[itemOrder], scope semel.Scope, key string, in itemOrder,
	insert func(context.Context, *sql.Tx, itemOrder) (int64, error),
) (placedOrder, bool, error) {
	order, replayed, err := semel.DoTx(ctx, engine, placeOrder.Call(scope, key, in),
		func(ctx context.Context, tx *sql.Tx) (placedOrder, error) {
			id, err := insert(ctx, tx, in) // with any of the libraries
			if errors.Is(err, errUnknownItem) {
				return placedOrder{}, semel.Final(err) // stored as the answer; the rows are rolled back
			}
			return placedOrder{ID: id, Item: in.Item, Amount: in.Amount}, err
		})
	return order, replayed, err
}

// runPostgresSQLFragment calls twice with one key, and once with another that fails for
// good.
func runPostgresSQLFragment(t *testing.T) {
	db, engine := onPostgresSQL(t.Context(), durableDatabase(t))
	t.Cleanup(func() { db.Close() })
	placeOrder := semel.Define("place_order", semel.OperationOptions[itemOrder]{})
	insert := func(ctx context.Context, tx *sql.Tx, in itemOrder) (id int64, err error) {
		if in.Item == "" {
			return 0, errUnknownItem
		}
		err = tx.QueryRowContext(ctx, `SELECT 7`).Scan(&id)
		return id, err
	}
	for _, wantReplay := range []bool{false, true} {
		order, replayed, err := placing(t.Context(), engine, placeOrder, semel.ScopeOf("ann"), "o-17", itemOrder{"tea", 2}, insert)
		if err != nil || replayed != wantReplay || order != (placedOrder{7, "tea", 2}) {
			t.Errorf("got %+v, %t, %v, want the order, %t", order, replayed, err, wantReplay)
		}
		_, _, err = placing(t.Context(), engine, placeOrder, semel.ScopeOf("ann"), "o-18", itemOrder{}, insert)
		if err == nil || semel.Replayed(err) != wantReplay {
			t.Errorf("an unknown item = %v, want a stored failure, replayed %t", err, wantReplay)
		}
	}
}
