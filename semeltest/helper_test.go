package semeltest_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// onEveryStore runs a test over memory, SQLite and PostgreSQL.
func onEveryStore(t *testing.T, onMemory func(*testing.T, storetest.Subject[*memory.Tx]),
	onSQLite func(*testing.T, storetest.Subject[*sql.Tx]), onPostgres func(*testing.T, storetest.Subject[pgx.Tx]),
) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "memory")
		onMemory(t, ledger.Memory(memory.Options{}))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "sqlite")
		onSQLite(t, ledger.SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		t.Attr("engine", "postgres")
		url := realtest.Postgres(t).Database(t)
		onPostgres(t, ledger.Postgres(t, url, url, postgres.Options{}))
	})
}

const lease = time.Minute

var me = semel.ScopeOf("me")

// newEngine returns an engine over s, which may be that of a crashed process.
func newEngine[Tx any](t *testing.T, s store.TxStore[Tx], ops ...semel.Declared) *semel.Engine[Tx] {
	t.Helper()
	e, err := semel.New(s, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute, Operations: ops})
	check.Require(t, err, "New")
	t.Cleanup(func() { _ = e.Close(t.Context()) }) // the context has ended by then
	return e
}

// way is one way to run an operation.
type way[Tx any] struct {
	name   string
	leased bool
	inTx   bool // the effect is in a transaction with the outcome
	policy semel.Policy
	run    func(ctx context.Context, e *semel.Engine[Tx], c semel.Call, fn func(context.Context, Tx) (string, error)) (string, bool, error)
}

func ways[Tx any](s storetest.Subject[Tx]) []way[Tx] {
	doTx := semel.DoTx[string, Tx]
	return []way[Tx]{
		{"inline", false, true, semel.Atomic(), doTx},
		{"DoTx", true, true, semel.Atomic(), doTx},
		{"InTx", true, true, semel.Atomic(), func(ctx context.Context, e *semel.Engine[Tx], c semel.Call, fn func(context.Context, Tx) (string, error)) (string, bool, error) {
			return semel.Do(ctx, e, c, func(ctx context.Context) (string, error) { return semel.InTx(ctx, e, fn) })
		}},
		{"Do", true, false, semel.AtLeastOnce(), func(ctx context.Context, e *semel.Engine[Tx], c semel.Call, fn func(context.Context, Tx) (string, error)) (string, bool, error) {
			return semel.Do(ctx, e, c, func(ctx context.Context) (v string, err error) {
				// Its effect is elsewhere, so that it has a transaction of its own.
				_, err = s.Store.Atomic(ctx, store.ID{}, false, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
					v, err = fn(ctx, tx)
					return nil, err
				})
				return v, err
			})
		}},
	}
}

func (w way[Tx]) call(key string) semel.Call {
	o := semel.OperationOptions[string]{Policy: w.policy}
	if w.leased {
		o.Lease = lease
	}
	return semel.Define(key+"."+w.name, o).Call(me, key, "in")
}
