// Package shop_test is a small program and its tests, in one file.
package shop_test

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

// The program: an order is stored, and a letter of thanks is enqueued, in one transaction.

type order struct{ Item string }

var (
	place = semel.Define("place_order", semel.OperationOptions[order]{})
	thank = semel.Define("thank", semel.OperationOptions[string]{
		Policy: semel.AtLeastOnce(),
		Retry:  &semel.Retry{},
	})
)

type shop struct{ engine *semel.Engine[*sql.Tx] }

// newShop takes the store, so that a test can give it another one.
func newShop(t *testing.T, records store.TxStore[*sql.Tx]) shop {
	t.Helper()
	engine, err := semel.New(records, semel.Options{Operations: []semel.Declared{thank}})
	if err != nil {
		t.Fatal(err)
	}
	return shop{engine}
}

func (s shop) order(ctx context.Context, key, item string) (number int64, err error) {
	user := semel.ScopeOf("ann")
	number, _, err = semel.DoTx(ctx, s.engine, place.Call(user, key, order{item}),
		func(ctx context.Context, tx *sql.Tx) (n int64, err error) {
			row := tx.QueryRowContext(ctx, `INSERT INTO orders (item) VALUES (?) RETURNING rowid`, item)
			if err := row.Scan(&n); err != nil {
				return 0, err
			}
			_, err = semel.EnqueueTx(ctx, s.engine, tx, thank.Call(user, key, item),
				semel.EnqueueOptions{Delay: time.Hour})
			return n, err
		})
	return number, err
}

// Helpers of the tests.

func openDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE orders (item TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return db
}

func requireOneOrder(t *testing.T, db *sql.DB) {
	t.Helper()
	var n int
	err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM orders`).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d orders, %v; want 1", n, err)
	}
}

func TestOrderIsPlacedOnce(t *testing.T) {
	db := openDB(t)
	s := newShop(t, sqlite.New(db, sqlite.Options{}))
	var callers sync.WaitGroup
	for range 10 { // a double click, a retry of the browser, a retry of the proxy …
		callers.Go(func() { _, _ = s.order(t.Context(), "key 1", "book") })
	}
	callers.Wait()
	first, err1 := s.order(t.Context(), "key 1", "book")
	again, err2 := s.order(t.Context(), "key 1", "book")
	if err1 != nil || err2 != nil || first != again {
		t.Errorf("got %v, %v and %v, %v; want the same number", first, err1, again, err2)
	}
	requireOneOrder(t, db)
}

func TestOrderSurvivesCrashes(t *testing.T) {
	for _, at := range []semeltest.Point{
		semeltest.BeforeFunction, semeltest.AfterFunction, semeltest.AfterOutcome,
	} {
		t.Run(at.String(), func(t *testing.T) {
			db := openDB(t)
			records := sqlite.New(db, sqlite.Options{})
			dying := newShop(t, semeltest.Crash(t, records, at))
			_, _ = dying.order(t.Context(), "key 1", "book") // a dead process answers no caller

			semeltest.Advance(t, records, time.Minute) // the lease of the dead process, if there is one
			if _, err := newShop(t, records).order(t.Context(), "key 1", "book"); err != nil {
				t.Error(err)
			}
			requireOneOrder(t, db)
		})
	}
}

func TestOrderSurvivesALostReply(t *testing.T) {
	db := openDB(t)
	records := sqlite.New(db, sqlite.Options{})
	s := newShop(t, semeltest.LoseReply(t, records)) // the COMMIT succeeds, and the connection breaks
	if n, err := s.order(t.Context(), "key 1", "book"); err != nil || n != 1 {
		t.Errorf("got %d, %v; want 1", n, err)
	}
	requireOneOrder(t, db)
}

func TestOrderIsThankedFor(t *testing.T) {
	records := sqlite.New(openDB(t), sqlite.Options{})
	s := newShop(t, records)
	if _, err := s.order(t.Context(), "key 1", "book"); err != nil {
		t.Fatal(err)
	}
	semeltest.RequireEnqueued(t, s.engine, thank.Call(semel.ScopeOf("ann"), "key 1", "book"))

	worker, err := task.New(s.engine, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	send := func(context.Context, string) (string, error) { return "sent", nil }
	if err := task.Handle(worker, thank, send, task.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := semeltest.RunDue(t, worker); n != 0 {
		t.Errorf("%d letters at once, want 0", n)
	}
	semeltest.Advance(t, records, time.Hour)
	if n := semeltest.RunDue(t, worker); n != 1 {
		t.Errorf("%d letters after an hour, want 1", n)
	}
}

func TestOrderOverHTTP(t *testing.T) {
	db := openDB(t)
	s := newShop(t, sqlite.New(db, sqlite.Options{}))
	post := semel.Define("post_order", semel.OperationOptions[semelhttp.Request]{})
	once, err := semelhttp.Atomic(s.engine, post, semelhttp.Options{
		ScopeFunc: func(*http.Request) (semel.Scope, error) { return semel.ScopeOf("ann"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, _ := semel.TxOf(r.Context(), s.engine)
		if _, err := tx.ExecContext(r.Context(), `INSERT INTO orders (item) VALUES ('book')`); err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	for i, want := range []struct {
		body, replayed string
		status         int
	}{
		{"book", "", http.StatusCreated},
		{"book", "true", http.StatusCreated},
		{"pen", "", http.StatusUnprocessableEntity}, // the same key for another request
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(want.body))
		r.Header.Set("Idempotency-Key", "key-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := w.Header().Get(semelhttp.HeaderReplayed); w.Code != want.status || got != want.replayed {
			t.Errorf("request %d: %d, replayed %q; want %d, %q", i+1, w.Code, got, want.status, want.replayed)
		}
	}
	requireOneOrder(t, db)
}
