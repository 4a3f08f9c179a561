package doctest_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
)

// The types that the fragments of docs/choosing-a-mode.md use.
type (
	shopOrder struct{ ID, State string }
	shopUser  struct{ Card, Name string }
)

func scanOrder(row guard.Row) (o shopOrder, state string, err error) {
	err = row.Scan(&o.ID, &o.State)
	return o, o.State, err
}

func scanUser(row guard.Row) (u shopUser, err error) {
	err = row.Scan(&u.Card, &u.Name)
	return u, err
}

func (p plantControl) Open(_ context.Context, key string, fence uint32) (string, error) {
	return "open", p.RaiseFence(context.Background(), key, fence)
}

var orderStates = guard.Transitions[string]{"paid": {"new"}, "shipped": {"paid"}, "cancelled": {"new", "paid"}}

// payOrder, addUser, opening and transferring contain the fragments.
func payOrder(ctx context.Context, db *sql.DB, id string) error {
	order, err := guard.Transition(ctx, guard.SQL(db), guard.Change[shopOrder, string]{
		Allowed: orderStates,
		To:      "paid",
		Update:  guard.Query(`UPDATE orders SET state = ? WHERE id = ? AND state = ?`, guard.To, id, guard.From),
		Select:  guard.Query(`SELECT id, state FROM orders WHERE id = ?`, id),
		Scan:    scanOrder,
	})
	if errors.Is(err, guard.ErrConflict) && order.State == "paid" {
		err = nil // it was paid before, by this caller or another one
	}
	return err
}

func addUser(ctx context.Context, tx *sql.Tx, card, name string) (shopUser, bool, error) {
	user, existed, err := guard.Insert(ctx, guard.SQL(tx), guard.Insertion[shopUser]{
		Insert: guard.Query(`INSERT INTO users (card, name) VALUES (?, ?)`, card, name),
		Select: guard.Query(`SELECT card, name FROM users WHERE card = ?`, card),
		Scan:   scanUser,
	})
	return user, existed, err
}

func opening(ctx context.Context, engine semel.Runner, valveID string, v Valve) (string, bool, error) {
	opened, replayed, err := guard.Do(ctx, engine, openValve.Call(semel.Shared(), valveID, v),
		func(ctx context.Context) (string, bool, error) { return plant.Find(ctx, valveID) },
		func(ctx context.Context, fence uint32) (string, error) { return plant.Open(ctx, valveID, fence) })
	return opened, replayed, err
}

func insertTransfer(context.Context, *sql.Tx, Payment) (Receipt, error) {
	return Receipt{Number: 9}, nil
}

func transferring(ctx context.Context, engine semel.Runner, domain *sql.DB, key string, p Payment) (Receipt, bool, error) {
	transfers := guard.NewRows[Receipt](guard.SQLDatabase(domain, guard.MySQL), "transfer_money")
	transfer := semel.Define("transfer_money", semel.OperationOptions[Payment]{Policy: transfers.Fenced()})
	call := transfer.Call(semel.ScopeOf("ann"), key, p)
	receipt, replayed, err := semel.Do(ctx, engine, call, func(ctx context.Context) (Receipt, error) {
		return transfers.InTx(ctx, func(ctx context.Context, tx *sql.Tx) (Receipt, error) { return insertTransfer(ctx, tx, p) })
	})
	return receipt, replayed, err
}

// TestModeFragmentsOfDocsRun calls each fragment twice. SQLite understands the
// statements of guard rows for MySQL, apart from the schema.
func TestModeFragmentsOfDocsRun(t *testing.T) {
	db, engine := onSQLite(t)
	for _, text := range []string{
		guard.Schema(guard.SQLite), `CREATE TABLE users (card TEXT PRIMARY KEY, name TEXT)`,
		`CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT)`, `INSERT INTO orders VALUES ('o-1', 'new')`,
	} {
		must(db.ExecContext(t.Context(), text))
	}
	for _, again := range []bool{false, true} {
		check.NoError(t, payOrder(t.Context(), db, "o-1"), "payOrder")
		tx := must(db.BeginTx(t.Context(), nil))
		if user, existed, err := addUser(t.Context(), tx, "4711", "Ann"); user != (shopUser{"4711", "Ann"}) || existed != again || err != nil {
			t.Errorf("addUser: %+v, %v, %v", user, existed, err)
		}
		must(0, tx.Commit())
		if opened, replayed, err := opening(t.Context(), engine, "valve-3", Valve{}); opened != "open" || replayed != again || err != nil {
			t.Errorf("opening: %q, %v, %v", opened, replayed, err)
		}
		if receipt, replayed, err := transferring(t.Context(), engine, db, "k1", Payment{5}); receipt.Number != 9 || replayed != again || err != nil {
			t.Errorf("transferring: %+v, %v, %v", receipt, replayed, err)
		}
	}
}
