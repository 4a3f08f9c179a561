package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/sqlite"
)

// exampleDB opens a new database with the tables of the examples.
func exampleDB(schema ...string) (db *sql.DB, remove func()) {
	dir := must(os.MkdirTemp("", "guard"))
	db = must(sqlite.Open(filepath.Join(dir, "shop.db")))
	for _, text := range schema {
		must(db.ExecContext(context.Background(), text))
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

// A state machine with optimistic lock: the retry of a transition changes nothing, and
// receives the current row.
func ExampleTransition() {
	db, remove := exampleDB(
		`CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL, changes INT NOT NULL)`,
		`INSERT INTO orders VALUES ('o-17', 'new', 0)`)
	defer remove()
	states := guard.Transitions[string]{"paid": {"new"}, "shipped": {"paid"}}

	change := func(id, to string) (string, error) {
		return guard.Transition(context.Background(), guard.SQL(db), guard.Change[string, string]{
			Allowed: states, To: to,
			Update: guard.Query(`UPDATE orders SET state = ?, changes = changes + 1 WHERE id = ? AND state = ?`, guard.To, id, guard.From),
			Select: guard.Query(`SELECT state FROM orders WHERE id = ?`, id),
			Scan: func(row guard.Row) (state, same string, err error) {
				err = row.Scan(&state)
				return state, state, err
			},
		})
	}
	for _, to := range []string{"shipped", "paid", "paid"} {
		current, err := change("o-17", to)
		fmt.Println(to, "- now", current, "- conflict:", errors.Is(err, guard.ErrConflict))
	}
	// Output:
	// shipped - now new - conflict: true
	// paid - now paid - conflict: false
	// paid - now paid - conflict: true
}

// A business key with a unique index: the violation becomes a replay of the row.
func ExampleInsert() {
	db, remove := exampleDB(`CREATE TABLE users (card TEXT PRIMARY KEY, name TEXT NOT NULL)`)
	defer remove()
	register := func(card, name string) (string, bool, error) {
		return guard.Insert(context.Background(), guard.SQL(db), guard.Insertion[string]{
			Insert: guard.Query(`INSERT INTO users (card, name) VALUES (?, ?)`, card, name),
			Select: guard.Query(`SELECT name FROM users WHERE card = ?`, card),
			Scan: func(row guard.Row) (name string, err error) {
				err = row.Scan(&name)
				return name, err
			},
		})
	}
	for range 2 {
		name, replayed, err := register("4711", "Ann")
		fmt.Println(name, replayed, err)
	}
	// Output:
	// Ann false <nil>
	// Ann true <nil>
}

// valve is a system that compares fencing tokens.
type valve struct {
	fence  uint32
	opened bool
}

func (v *valve) raise(_ context.Context, _ semel.Scope, _ string, fence uint32) error {
	v.fence = max(v.fence, fence)
	return nil
}

func (v *valve) look(context.Context, semel.Scope, string) (any, bool, error) {
	return "open", v.opened, nil
}

func (v *valve) open(fence uint32) (string, error) {
	if fence < v.fence {
		return "", semel.NotCommitted(errors.New("an old attempt"))
	}
	v.fence, v.opened = fence, true
	return "open", nil
}

// Lock, check, execute, with a system that compares fencing tokens.
func ExampleDo() {
	v := new(valve)
	openValve := semel.Define("open_valve", semel.OperationOptions[string]{Policy: semel.Fenced(v.raise, v.look)})
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))

	for range 2 {
		state, replayed, err := guard.Do(context.Background(), engine, openValve.Call(semel.Shared(), "valve-3", "north"),
			func(context.Context) (string, bool, error) { return "open", v.opened, nil },
			func(_ context.Context, fence uint32) (string, error) {
				fmt.Println("open with the fencing token", fence)
				return v.open(fence)
			})
		fmt.Println(state, replayed, err)
	}
	// Output:
	// open with the fencing token 1
	// open false <nil>
	// open true <nil>
}

// Lock, check, execute in the record's own database.
func ExampleDoTx() {
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))
	register := semel.Define("register", semel.OperationOptions[string]{})

	for range 2 {
		name, replayed, err := guard.DoTx(context.Background(), engine, register.Call(semel.Shared(), "card-4711", "Ann"),
			func(_ context.Context, tx *memory.Tx) (string, bool, error) {
				name, found := tx.Get("user/card-4711")
				return string(name), found, nil
			},
			func(_ context.Context, tx *memory.Tx) (string, error) {
				return "Ann", tx.Put("user/card-4711", []byte("Ann"))
			})
		fmt.Println(name, replayed, err)
	}
	// Output:
	// Ann false <nil>
	// Ann true <nil>
}

// Records in one database and the domain in another one. A guard row is committed with
// the effect, so a retry finds out what happened to an attempt that did not answer.
func ExampleRows() {
	domain, remove := exampleDB(guard.Schema(guard.SQLite), `CREATE TABLE transfers (amount INT NOT NULL)`)
	defer remove()
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))
	rows := guard.NewRows[string](guard.SQLDatabase(domain, guard.SQLite), "transfer")
	transfer := semel.Define("transfer", semel.OperationOptions[int]{Policy: rows.Fenced()})

	run := func(answers bool) (string, bool, error) {
		return semel.Do(context.Background(), engine, transfer.Call(semel.ScopeOf("ann"), "k1", 5), func(ctx context.Context) (string, error) {
			receipt, err := rows.InTx(ctx, func(ctx context.Context, tx *sql.Tx) (string, error) {
				_, err := tx.ExecContext(ctx, `INSERT INTO transfers (amount) VALUES (?)`, 5)
				return "receipt 5", err
			})
			if !answers {
				return "", errors.New("the answer is lost")
			}
			return receipt, err
		})
	}
	_, _, err := run(false)
	fmt.Println("unknown:", errors.Is(err, semel.ErrOutcomeUnknown))
	receipt, replayed, err := run(true)
	fmt.Println(receipt, replayed, err)
	// Output:
	// unknown: true
	// receipt 5 true <nil>
}

// A record in doubt is settled: after the seal, no attempt can commit any more.
func ExampleRows_Settle() {
	domain, remove := exampleDB(guard.Schema(guard.SQLite))
	defer remove()
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))
	rows := guard.NewRows[string](guard.SQLDatabase(domain, guard.SQLite), "transfer")
	transfer := semel.Define("transfer", semel.OperationOptions[int]{Policy: rows.Heal()})
	ctx, call := context.Background(), transfer.Call(semel.ScopeOf("ann"), "k1", 5)
	run := func() error {
		_, _, err := semel.Do(ctx, engine, call, func(context.Context) (string, error) { return "", errors.New("no answer") })
		return err
	}
	_ = run()
	fmt.Println("in doubt:", errors.Is(run(), semel.ErrInDoubt))
	for _, record := range must(admin.List(ctx, engine, store.Query{State: store.InDoubt, Operation: "transfer"})) {
		settled, err := rows.Settle(ctx, engine, record, semel.Keep, "reconciler")
		fmt.Println(settled.State, err)
	}
	fmt.Println(run())
	// Output:
	// in doubt: true
	// Failed <nil>
	// not_committed: the operation has failed without an effect
}
