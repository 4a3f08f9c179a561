package semelhttp_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
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
	storetest.Subject[Tx]

	spoil func(ctx context.Context, tx Tx) error
	// again opens the store as another process does.
	again func(t *testing.T) store.TxStore[Tx]
}

// onEveryStore runs test on an engine over each store.
func onEveryStore(t *testing.T, test func(t *testing.T, r *setup)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, newSetup(t, domain[*memory.Tx]{Subject: ledger.Memory(memory.Options{})}))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "sqlite")
		test(t, newSetup(t, domain[*sql.Tx]{
			Subject: ledger.SQLite(t),
			spoil: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT OR ROLLBACK INTO effects (key) VALUES (NULL)`)
				return err
			},
		}))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := realtest.Postgres(t).Database(t)
		test(t, newSetup(t, domain[pgx.Tx]{
			Subject: ledger.Postgres(t, url, url, postgres.Options{}),
			spoil: func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES (NULL)`)
				return err
			},
			again: func(t *testing.T) store.TxStore[pgx.Tx] {
				return check.Must(postgres.New(ledger.Pool(t, url), postgres.Options{}))(t)
			},
		}))
	})
}

// newSetup is a process of its own over d.
func newSetup[Tx any](t *testing.T, d domain[Tx]) *setup {
	t.Helper()
	r := new(setup)
	faulty := storetest.NewFaultyTx[Tx](&gatedStore[Tx]{d.Store, &r.gate}, func(c storetest.Call) storetest.Fault {
		if decide := r.faults.Load(); decide != nil {
			return (*decide)(c)
		}
		return storetest.Fault{}
	})
	engine, err := semel.New[Tx](faulty, semel.Options{
		Survive: store.NoFailure, RecordTimeout: 20 * time.Second, // TestTimeoutHandlerInside lasts that long on SQLite
	})
	check.Require(t, err, "New")
	t.Cleanup(func() {
		r.faults.Store(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check.NoError(t, engine.Close(ctx), "Close")
	})
	r.runner, r.effects = engine, d.Effects
	r.another = func(t *testing.T) *setup {
		t.Helper()
		if d.again != nil {
			d.Store = d.again(t)
		}
		return newSetup(t, d)
	}
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
		return d.Effect(ctx, tx, key)
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
