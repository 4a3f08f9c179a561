package doctest_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semeltest/pin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

// compiledFragments is the text of the files that hold the fragments of the documents.
func compiledFragments(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*fragment*_test.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("found the files %q (%v)", files, err)
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString(flat(read(t, filepath.Join("internal", "doctest", file))))
	}
	return text.String()
}

// TestFragmentsOfDocsAreCompiled finds every fragment of Go below docs in a test file.
func TestFragmentsOfDocsAreCompiled(t *testing.T) {
	here := compiledFragments(t)
	found := 0
	for _, name := range documents(t) {
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		for _, b := range blocks(read(t, name)) {
			if b.language != "go" || strings.Contains(b.text, "package main") || strings.HasPrefix(b.text, "func serve(") {
				continue // other tests build and run programs
			}
			found++
			if !strings.Contains(here, flat(b.text)) {
				t.Errorf("a fragment of %s is not compiled here:\n%s", name, b.text)
			}
		}
	}
	if found < 6 {
		t.Errorf("docs has %d fragments; this test looks in the wrong place", found)
	}
}

// The types and values that the fragments use.
type (
	Greeting struct{ Name string }
	Payment  struct{ Amount int }
	Receipt  struct{ Number int }
	payment  struct{ ChargeID string }
)

var createOrder = semel.Define("create_order", semel.OperationOptions[Order]{})

var welcome = semel.Define("welcome", semel.OperationOptions[Greeting]{
	Policy: semel.Keyed(),
	Retry:  &semel.Retry{},
})

// greeting, welcoming and redriving contain the fragments of docs/tasks.md.
func greeting(ctx context.Context, engine *semel.Engine[*sql.Tx], tx *sql.Tx, scope semel.Scope, memberID string) (bool, error) {
	added, err := semel.EnqueueTx(ctx, engine, tx, welcome.Call(scope, memberID, Greeting{Name: "Ann"}), semel.EnqueueOptions{})
	return added, err
}

func welcoming(ctx context.Context, engine *semel.Engine[*sql.Tx], greet func(context.Context, Greeting) (string, error)) error {
	worker := must(task.New(engine, task.Options{}))
	must(0, task.Handle(worker, welcome, greet, task.HandlerOptions{}))
	err := worker.Run(ctx)
	return err
}

func redriving(ctx context.Context, engine *semel.Engine[*sql.Tx]) error {
	for r, err := range admin.DeadLetters(ctx, engine, "send_mail") {
		if err != nil {
			return err
		}
		_, err = admin.Redrive(ctx, engine, admin.RedriveRequest{ID: r.ID, Actor: "ann", Reason: "the mail server is back"})
		if err != nil {
			return err
		}
	}
	return nil
}

// onSQLite opens a new database, and an engine on it.
func onSQLite(t *testing.T, operations ...semel.Declared) (*sql.DB, *semel.Engine[*sql.Tx]) {
	t.Helper()
	db := must(sqlite.Open(filepath.Join(t.TempDir(), "records.db")))
	t.Cleanup(func() { db.Close() })
	must(0, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	return db, must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Operations: operations}))
}

func TestTaskFragmentsOfDocsRun(t *testing.T) {
	mail := semel.Define("send_mail", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{MaxErrors: 1}})
	db, engine := onSQLite(t, welcome, mail)
	tx := must(db.BeginTx(t.Context(), nil))
	for _, want := range []bool{true, false} {
		check.Result(greeting(t.Context(), engine, tx, semel.Shared(), "7"))(t, want, "EnqueueTx")
	}
	must(0, tx.Commit())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	check.NoError(t, welcoming(ctx, engine, func(context.Context, Greeting) (string, error) { defer stop(); return "", nil }), "the worker returned")
	letter := mail.Call(semel.Shared(), "7", "ann")
	_, _, failed := semel.Do(t.Context(), engine, letter, func(context.Context) (string, error) { return "", errNoAnswer })
	check.Fails(t, failed, "the mail was sent")
	check.NoError(t, redriving(t.Context(), engine), "redriving")
	if r, _, err := admin.Get(t.Context(), engine, "send_mail", semel.Shared(), "7"); r.State != store.Pending || err != nil {
		t.Errorf("the dead letter is %v after its redrive (%v), want Pending", r.State, err)
	}
}

// partitioned and remembered contain the fragments of docs/retention.md.
func partitioned(ctx context.Context, pool *pgxpool.Pool) error {
	records := must(postgres.New(pool, postgres.Options{}))
	keeper := must(postgres.NewPartitions(records, postgres.PartitionOptions{Keep: 7 * 24 * time.Hour}))
	err := keeper.Run(ctx) // in any number of processes; they take turns
	return err
}

// TestPartitionFragmentOfDocs only starts Run; store/postgres tests what Run does.
func TestPartitionFragmentOfDocs(t *testing.T) {
	pool, _ := onPostgres(t.Context(), durableDatabase(t))
	t.Cleanup(pool.Close)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := partitioned(ctx, pool); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want the context's error", err)
	}
}

var pay = semel.Define("pay", semel.OperationOptions[Payment]{Generation: 24 * time.Hour})

func TestGenerationFragmentOfDocsRuns(t *testing.T) {
	_, engine := onSQLite(t)
	for _, want := range []bool{false, true} {
		_, replayed, err := semel.DoTx(t.Context(), engine, pay.Call(semel.Shared(), "7", Payment{5}),
			func(context.Context, *sql.Tx) (string, error) { return "paid", nil })
		check.Result(replayed, err)(t, want, "DoTx: replayed")
	}
}

// TestCreateOrderIsPinned is the fragment of docs/upgrading.md.
func TestCreateOrderIsPinned(t *testing.T) {
	call := createOrder.Call(semel.ScopeOf("ann"), "k1", Order{Item: "book", Amount: 2})
	pin.Call(t, "testdata/create_order.json", call, Receipt{Number: 7})
}

type payments struct{ charges int }

func (s *payments) charge(context.Context, payment) (string, error) {
	s.charges++
	return "ch_1", nil
}

// paying contains the fragment of docs/recipes/checkout.md.
func paying(ctx context.Context, engine *semel.Engine[*sql.Tx], call semel.Call, scope semel.Scope, provider *payments,
	record *semel.Operation[payment], p payment, insertAndEnqueue func(context.Context, *sql.Tx) (payment, error),
) (payment, bool, error) {
	paid, replayed, err := semel.Do(ctx, engine, call, func(ctx context.Context) (payment, error) {
		var err error
		if p.ChargeID, err = provider.charge(ctx, p); err != nil { // carries the child key "charge"
			return payment{}, err // unknown: the next attempt sends the same request
		}
		key, err := semel.ChildKey(ctx, "record")
		if err != nil {
			return payment{}, err
		}
		recorded, _, err := semel.DoTx(ctx, engine, record.Call(scope, key, p), insertAndEnqueue)
		return recorded, err
	})
	return paid, replayed, err
}

// TestCheckoutFragmentRuns fails between the two steps first: the next attempt charges
// under the same key, and records once.
func TestCheckoutFragmentRuns(t *testing.T) {
	_, engine := onSQLite(t)
	record := semel.Define("record_payment", semel.OperationOptions[payment]{})
	order := semel.Define("pay_order", semel.OperationOptions[string]{Policy: semel.Keyed()})
	provider, recorded := new(payments), 0
	for _, want := range []struct{ replayed, fails bool }{{fails: true}, {}, {replayed: true}} {
		paid, replayed, err := paying(t.Context(), engine, order.Call(semel.ScopeOf("ann"), "o-17", "book"), semel.ScopeOf("ann"), provider,
			record, payment{}, func(context.Context, *sql.Tx) (payment, error) {
				if provider.charges == 1 {
					return payment{}, errNoAnswer
				}
				recorded++
				return payment{ChargeID: "ch_1"}, nil
			})
		if (err != nil) != want.fails || replayed != want.replayed || err == nil && paid.ChargeID != "ch_1" {
			t.Errorf("paid %+v, replayed %t, %v, want %+v", paid, replayed, err, want)
		}
	}
	if recorded != 1 || provider.charges != 2 {
		t.Errorf("recorded %d times after %d charges, want 1 after 2", recorded, provider.charges)
	}
}
