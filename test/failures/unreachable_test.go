package failures_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/journal"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// TestUnreachablePostgres checks the errors of calls while the database is down, and
// while the program uses all connections of the pool.
func TestUnreachablePostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	for name, test := range map[string]struct {
		options postgres.Options
		cut     func(t *testing.T, p *pgxpool.Pool)
	}{
		"closed": {postgres.Options{}, func(_ *testing.T, p *pgxpool.Pool) { p.Close() }},
		"no free connection": {postgres.Options{MaxSessions: -1}, func(t *testing.T, p *pgxpool.Pool) {
			for range p.Config().MaxConns {
				c := check.Must(p.Acquire(t.Context()))(t)
				t.Cleanup(c.Release)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ledger.Pool(t, realtest.Postgres(t).Database(t))
			check.Require(t, pgmigrate.Up(t.Context(), p, pgmigrate.Options{}))
			s := check.Must(postgres.New(p, test.options))(t)
			tx := check.Must(p.Begin(t.Context()))(t)
			check.Require(t, tx.Rollback(t.Context()))
			unreachable[pgx.Tx](t, s, tx, func() { test.cut(t, p) })
		})
	}
}

// TestUnreachableSQLite does the same for SQLite; SetMaxOpenConns allows no other
// connection.
func TestUnreachableSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	for name, cut := range map[string]func(t *testing.T, db *sql.DB){
		"closed": func(_ *testing.T, db *sql.DB) { _ = db.Close() },
		"no free connection": func(t *testing.T, db *sql.DB) {
			db.SetMaxOpenConns(1)
			conn := check.Must(db.Conn(t.Context()))(t)
			t.Cleanup(func() { _ = conn.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "gone.db")))(t)
			t.Cleanup(func() { _ = db.Close() })
			check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
			tx := check.Must(db.BeginTx(t.Context(), nil))(t)
			check.Require(t, tx.Rollback())
			unreachable(t, sqlite.New(db, sqlite.Options{}), tx, func() { cut(t, db) })
		})
	}
}

// unreachable closes the database under an engine. No call returns an error of the driver
// that is not also ErrUnavailable.
func unreachable[Tx any](t *testing.T, s store.TxStore[Tx], ended Tx, closes func()) {
	t.Helper()
	task, direct := unreachableOperations()
	e := whenReachable(t, func() (*semel.Engine[Tx], error) { return semel.New(s, unreachableOptions(task)) })
	closes()
	ctx, call := t.Context(), task.Call(semel.ScopeOf("ann"), "k", "in")
	allUnavailable(t, s, e, task, direct, map[string]func() error{
		"DoTx": func() error {
			_, _, err := semel.DoTx(ctx, e, direct, func(context.Context, Tx) (string, error) { return neverRuns(t) })
			return err
		},
		"EnqueueTx": func() error {
			_, err := semel.EnqueueTx(ctx, e, ended, call, semel.EnqueueOptions{})
			return err
		},
		"New": func() error {
			_, err := semel.New(s, unreachableOptions(task))
			return err
		},
	})
}

func unreachableOperations() (task *semel.Operation[string], direct semel.Call) {
	return semel.Define("task", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}}),
		semel.Define("direct", semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), "k", "in")
}

func unreachableOptions(task semel.Declared) semel.Options {
	return semel.Options{Survive: store.NoFailure, RecordTimeout: time.Second, Operations: []semel.Declared{task}}
}

// whenReachable makes an engine over a database that is up. On a slow machine, New may not have
// its answer within the RecordTimeout.
func whenReachable[E any](t *testing.T, newEngine func() (E, error)) (engine E) {
	t.Helper()
	realtest.Poll(t, "an engine", func() bool {
		var err error
		engine, err = newEngine()
		if !errors.Is(err, semel.ErrUnavailable) {
			check.Require(t, err)
		}
		return err == nil
	})
	return engine
}

func neverRuns(t *testing.T) (string, error) {
	t.Helper()
	t.Error("the function ran")
	return "", nil
}

// allUnavailable requires that those calls, and those that every store has, fail.
func allUnavailable(t *testing.T, s store.Store, e semel.Runner, task *semel.Operation[string], direct semel.Call, calls map[string]func() error) {
	t.Helper()
	ctx, call := t.Context(), task.Call(semel.ScopeOf("ann"), "k", "in")
	claimed := store.Record{Operation: "task"}
	claimed.ID, claimed.Token = call.ID(), store.Token{State: store.InProgress, Attempt: 1, Owner: 7}
	maps.Copy(calls, map[string]func() error{
		"Do": func() error {
			_, _, err := semel.Do(ctx, e, direct, func(context.Context) (string, error) { return neverRuns(t) })
			return err
		},
		"Enqueue": func() error {
			_, err := semel.Enqueue(ctx, e, call, semel.EnqueueOptions{})
			return err
		},
		"Get":        func() error { _, _, err := admin.Get(ctx, e, "task", semel.ScopeOf("ann"), "k"); return err },
		"List":       func() error { _, err := admin.List(ctx, e, store.Query{}); return err },
		"Dequeue":    func() error { _, err := adapter.Dequeue(ctx, e, task, 1); return err },
		"Sweep":      func() error { _, err := admin.Sweep(ctx, e, 10); return err },
		"Purge":      func() error { _, err := admin.Purge(ctx, e, 10); return err },
		"Cancel":     func() error { _, err := admin.Cancel(ctx, e, call.ID(), "r"); return err },
		"Reschedule": func() error { _, err := admin.Reschedule(ctx, e, call.ID(), time.Second); return err },
		"Redrive": func() error {
			_, err := admin.Redrive(ctx, e, admin.RedriveRequest{ID: call.ID(), Actor: "me", Reason: "r"})
			return err
		},
		"DeadLetters": func() error { return firstError(admin.DeadLetters(ctx, e, "task")) },
		"Resolve": func() error {
			_, err := admin.Resolve(ctx, e, admin.Resolution{ID: call.ID(), To: store.Failed, Actor: "me", Reason: "r"})
			return err
		},
		"Settle": func() error {
			_, _, err := admin.Settle(ctx, e, journal.Entry{Record: claimed, Step: "succeed"})
			return err
		},
	})
	if _, audits := s.(store.Auditor); audits {
		calls["Notes"] = func() error { _, err := admin.Notes(ctx, e, call.ID()); return err }
	}
	var all sync.WaitGroup
	for name, request := range calls {
		all.Go(func() {
			check.ErrorIs(t, request(), semel.ErrUnavailable, "%s", name)
		})
	}
	all.Wait()
	// A claim without an answer may have been applied. It is released until Close
	// gives up.
	closed, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = e.Close(closed)
}

func firstError(records func(yield func(store.Record, error) bool)) (first error) {
	for _, err := range records {
		if err != nil {
			return err
		}
	}
	return nil
}
