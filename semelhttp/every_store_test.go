package semelhttp_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

// setup is an engine over one of the stores, with domain data beside the records,
// as a process with a database has.
type setup struct {
	runner semel.Runner
	atomic func(*semel.Operation[semelhttp.Request], semelhttp.Options) (func(http.Handler) http.Handler, error)
	inTx   func(ctx context.Context, fn func(context.Context) error) error
	// effect makes one effect for key in the transaction of ctx.
	effect func(ctx context.Context, key string) error
	// effects counts the committed effects.
	effects func(key string) int
	// spoil sends the database, in that transaction, a statement that fails. Nil:
	// there is no database.
	spoil func(ctx context.Context) error
	get   func(op, key string) store.Record
	// another is another process over the same database.
	another func(t *testing.T) *setup
	// faults decide about each call of the store; nil: no faults.
	faults atomic.Pointer[func(storetest.Call) storetest.Fault]
	// gate is entered before a COMMIT of the store, and left when it is opened.
	gate atomic.Pointer[barrier]
}

// domain has what a setup needs of a database.
type domain[Tx any] struct {
	store   store.TxStore[Tx]
	effect  func(ctx context.Context, tx Tx, key string) error
	effects func(key string) int
	spoil   func(ctx context.Context, tx Tx) error
	// again opens the same database as another process does.
	again func(t *testing.T) domain[Tx]
}

// onEveryStore runs test on an engine over each store.
func onEveryStore(t *testing.T, test func(t *testing.T, r *setup)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, newSetup(t, memoryDomain()))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "sqlite")
		test(t, newSetup(t, sqliteDomain(t, filepath.Join(t.TempDir(), "semel.db"))))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newSetup(t, postgresDomain(t)))
	})
}

// newSetup is a process of its own over d.
func newSetup[Tx any](t *testing.T, d domain[Tx]) *setup {
	t.Helper()
	r := new(setup)
	faulty := storetest.NewFaultyTx[Tx](&gatedStore[Tx]{d.store, &r.gate}, func(c storetest.Call) storetest.Fault {
		if decide := r.faults.Load(); decide != nil {
			return (*decide)(c)
		}
		return storetest.Fault{}
	})
	engine, err := semel.New[Tx](faulty, semel.Options{Survive: store.NoFailure})
	check.Require(t, err, "New")
	t.Cleanup(func() {
		r.faults.Store(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check.NoError(t, engine.Close(ctx), "Close")
	})
	r.runner, r.effects = engine, d.effects
	r.another = func(t *testing.T) *setup { t.Helper(); return newSetup(t, d.again(t)) }
	r.atomic = func(op *semel.Operation[semelhttp.Request], o semelhttp.Options) (func(http.Handler) http.Handler, error) {
		return semelhttp.Atomic(engine, op, o)
	}
	r.inTx = func(ctx context.Context, fn func(context.Context) error) error {
		_, err := semel.InTx(ctx, engine, func(ctx context.Context, _ Tx) (struct{}, error) { return struct{}{}, fn(ctx) })
		return err
	}
	r.effect = func(ctx context.Context, key string) error {
		tx, ok := semel.TxOf(ctx, engine)
		if !ok {
			return errors.New("there is no transaction")
		}
		return d.effect(ctx, tx, key)
	}
	if d.spoil != nil {
		r.spoil = func(ctx context.Context) error {
			tx, _ := semel.TxOf(ctx, engine)
			return d.spoil(ctx, tx)
		}
	}
	r.get = func(op, key string) store.Record {
		record, _, err := admin.Get(context.WithoutCancel(t.Context()), engine, op, semel.ScopeOf("ann"), key)
		check.NoError(t, err, "Get %s", key)
		return record
	}
	return r
}

// gatedStore is a store whose commits can be delayed.
type gatedStore[Tx any] struct {
	store.TxStore[Tx]
	gate *atomic.Pointer[barrier]
}

func (g *gatedStore[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return g.TxStore.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		last, err := run(ctx, tx, current)
		if b := g.gate.Load(); b != nil && last != nil {
			b.wait()
		}
		return last, err
	})
}

func (g *gatedStore[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if b := g.gate.Load(); b != nil && changes[0].To.State == store.Succeeded {
		b.wait()
	}
	return g.TxStore.Swap(ctx, changes)
}

func memoryDomain() domain[*memory.Tx] {
	s, n := memory.New(memory.Options{}), new(atomic.Int64)
	name := func(key string, i int64) string { return fmt.Sprintf("effect/%s/%d", key, i) }
	d := domain[*memory.Tx]{
		store:  s,
		effect: func(_ context.Context, tx *memory.Tx, key string) error { return tx.Put(name(key, n.Add(1)), nil) },
		effects: func(key string) (count int) {
			for i := range n.Load() {
				if _, ok := s.Value(name(key, i+1)); ok {
					count++
				}
			}
			return count
		},
	}
	d.again = func(*testing.T) domain[*memory.Tx] { return d }
	return d
}

// sqliteDomain opens the file, as every process does that shares it.
func sqliteDomain(t *testing.T, path string) domain[*sql.Tx] {
	t.Helper()
	db := check.Must(sqlite.Open(path))(t)
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	check.Must(db.ExecContext(t.Context(), `CREATE TABLE IF NOT EXISTS effects (id INTEGER PRIMARY KEY, key TEXT NOT NULL)`))(t)
	ctx := context.WithoutCancel(t.Context())
	return domain[*sql.Tx]{
		store: sqlite.New(db, sqlite.Options{}),
		effect: func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (key) VALUES (?)`, key)
			return err
		},
		effects: func(key string) (n int) {
			check.NoError(t, db.QueryRowContext(ctx, `SELECT count(*) FROM effects WHERE key = ?`, key).Scan(&n), "count effects")
			return n
		},
		spoil: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT OR ROLLBACK INTO effects (key) VALUES (NULL)`)
			return err
		},
		again: func(t *testing.T) domain[*sql.Tx] { t.Helper(); return sqliteDomain(t, path) },
	}
}

// postgresDomain is a database of its own.
func postgresDomain(t *testing.T) domain[pgx.Tx] {
	t.Helper()
	url := realtest.Postgres(t).Database(t)
	d := postgresAt(t, url)
	d.again = func(t *testing.T) domain[pgx.Tx] { t.Helper(); return postgresAt(t, url) }
	return d
}

// postgresAt connects to the database, as every process does that shares it.
func postgresAt(t *testing.T, url string) domain[pgx.Tx] {
	t.Helper()
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	t.Cleanup(pool.Close)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	check.Must(pool.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS effects (id bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL)`))(t)
	s := check.Must(postgres.New(pool, postgres.Options{}))(t)
	ctx := context.WithoutCancel(t.Context())
	return domain[pgx.Tx]{
		store: s,
		effect: func(ctx context.Context, tx pgx.Tx, key string) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES ($1)`, key)
			return err
		},
		effects: func(key string) (n int) {
			check.NoError(t, pool.QueryRow(ctx, `SELECT count(*) FROM effects WHERE key = $1`, key).Scan(&n), "count effects")
			return n
		},
		spoil: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES (NULL)`)
			return err
		},
	}
}
