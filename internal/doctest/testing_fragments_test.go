package doctest_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

// The program whose tests docs/testing.md shows.
var (
	place = semel.Define("place_order", semel.OperationOptions[Order]{})
	thank = semel.Define("thank", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}, Lease: time.Minute})
)

type shopService struct {
	engine *semel.Engine[*sql.Tx]
}

func newShop(s store.TxStore[*sql.Tx]) *shopService {
	return &shopService{must(semel.New(s, semel.Options{Operations: []semel.Declared{thank}}))}
}

// Order stores an order of the user, and enqueues a letter of thanks an hour later.
func (s *shopService) Order(ctx context.Context, user, key string, o Order) (Receipt, error) {
	receipt, _, err := semel.DoTx(ctx, s.engine, place.Call(semel.ScopeOf(user), key, o), func(ctx context.Context, tx *sql.Tx) (r Receipt, err error) {
		row := tx.QueryRowContext(ctx, `INSERT INTO orders (item) VALUES (?) RETURNING rowid`, o.Item)
		if err := row.Scan(&r.Number); err != nil {
			return r, err
		}
		_, err = semel.EnqueueTx(ctx, s.engine, tx, thank.Call(semel.ScopeOf(user), key, o.Item), semel.EnqueueOptions{Delay: time.Hour})
		return r, err
	})
	return receipt, err
}

func openTestDB(t *testing.T) *sql.DB {
	t.Helper()
	db := must(sqlite.Open(filepath.Join(t.TempDir(), "test.db")))
	t.Cleanup(func() { db.Close() })
	must(0, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	must(db.ExecContext(t.Context(), `CREATE TABLE orders (item TEXT NOT NULL)`))
	return db
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	must(0, db.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

func TestOrderIsPlacedOnce(t *testing.T) {
	db := openTestDB(t) // your tables, and those of migrate/sqlite
	shop := newShop(sqlite.New(db, sqlite.Options{}))
	var callers sync.WaitGroup
	for range 10 { // a double click, a retry of the browser, a retry of the proxy …
		callers.Go(func() {
			_, _ = shop.Order(t.Context(), "ann", "key 1", Order{Item: "book"})
		})
	}
	callers.Wait()
	first, err1 := shop.Order(t.Context(), "ann", "key 1", Order{Item: "book"})
	again, err2 := shop.Order(t.Context(), "ann", "key 1", Order{Item: "book"})
	if err1 != nil || err2 != nil || first != again {
		t.Errorf("got %v, %v and %v, %v; want the same receipt", first, err1, again, err2)
	}
	if n := count(t, db, `SELECT count(*) FROM orders`); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

func TestOrderSurvivesCrashes(t *testing.T) {
	for _, at := range []semeltest.Point{semeltest.BeforeFunction, semeltest.AfterFunction, semeltest.AfterOutcome} {
		t.Run(at.String(), func(t *testing.T) {
			db := openTestDB(t)
			records := sqlite.New(db, sqlite.Options{})
			dying := newShop(semeltest.Crash(t, records, at))
			_, _ = dying.Order(t.Context(), "ann", "key 1", Order{Item: "book"}) // a dead process answers no caller

			semeltest.Advance(t, records, time.Minute) // the lease of the dead process, if the operation has one
			_, err := newShop(records).Order(t.Context(), "ann", "key 1", Order{Item: "book"})
			if n := count(t, db, `SELECT count(*) FROM orders`); n != 1 || err != nil {
				t.Errorf("%d orders, %v; want 1", n, err)
			}
		})
	}
}

func TestOrderIsThankedFor(t *testing.T) {
	records := sqlite.New(openTestDB(t), sqlite.Options{})
	shop := newShop(records)
	_ = must(shop.Order(t.Context(), "ann", "key 1", Order{Item: "book"}))
	semeltest.RequireEnqueued(t, shop.engine, thank.Call(semel.ScopeOf("ann"), "key 1", "book"))

	worker := must(task.New(shop.engine, task.Options{}))
	must(0, task.Handle(worker, thank, func(context.Context, string) (string, error) { return "sent", nil }, task.HandlerOptions{}))
	if n := semeltest.RunDue(t, worker); n != 0 {
		t.Errorf("%d letters at once, want 0", n)
	}
	semeltest.Advance(t, records, time.Hour)
	if n := semeltest.RunDue(t, worker); n != 1 {
		t.Errorf("%d letters after an hour, want 1", n)
	}
}

func TestOrderSurvivesALostReply(t *testing.T) {
	records := sqlite.New(openTestDB(t), sqlite.Options{})
	shop := newShop(semeltest.LoseReply(t, records)) // the COMMIT succeeds, and the connection breaks
	if receipt, err := shop.Order(t.Context(), "ann", "key 1", Order{Item: "book"}); err != nil || receipt.Number != 1 {
		t.Errorf("got %v, %v; want receipt 1", receipt, err)
	}
}

func TestOrderOverHTTP(t *testing.T) {
	handler := shopHandler(t)
	post := func(key, body string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
	first, again, other := post("key-1", "book"), post("key-1", "book"), post("key-1", "pen")
	if first.StatusCode != http.StatusCreated || again.StatusCode != http.StatusCreated {
		t.Errorf("got %d and %d, want 201 twice", first.StatusCode, again.StatusCode)
	}
	if again.Header.Get(semelhttp.HeaderReplayed) != "true" {
		t.Error("the retry was not a replay")
	}
	if other.StatusCode != http.StatusUnprocessableEntity { // the same key for another request
		t.Errorf("got %d, want 422", other.StatusCode)
	}
}

// shopHandler is the program of the test over HTTP.
func shopHandler(t *testing.T) http.Handler {
	t.Helper()
	engine := must(semel.New(sqlite.New(openTestDB(t), sqlite.Options{}), semel.Options{}))
	op := semel.Define("orders", semel.OperationOptions[semelhttp.Request]{})
	once := must(semelhttp.Atomic(engine, op, semelhttp.Options{
		ScopeFunc: func(*http.Request) (semel.Scope, error) { return semel.ScopeOf("ann"), nil },
	}))
	return once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, _ := semel.TxOf(r.Context(), engine)
		must(tx.ExecContext(r.Context(), `INSERT INTO orders (item) VALUES ('book')`))
		w.WriteHeader(http.StatusCreated)
	}))
}
