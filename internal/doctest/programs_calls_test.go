//go:build fragments

package doctest_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/redis"
	"github.com/semelgo/semel/store/sqlite"
)

// These tests run only within TestFragmentsRun, which replaces each comment that names a page
// by the fragment.

// The types of the pages.
type (
	Document   struct{ Text string }
	Group      struct{ ID int64 }
	ImportFile struct{ Name string }
	Page       struct{ URL string }
	Payment    struct{ Amount int }
	Receipt    struct{ Number int }
	Report     struct{ Text string }
	Valve      struct{ Name string }
	newGroup   struct{ Name string }
	shopOrder  struct{ ID, State string }
	shopUser   struct{ Card, Name string }
	itemOrder  struct {
		Item   string
		Amount int
	}
	placedOrder struct {
		ID     int64
		Item   string
		Amount int
	}
)

var errUnknownItem, errLineBusy = errors.New("unknown item"), errors.New("line busy")

// remote is each system that the fragments call. It remembers the keys of the calls, and does
// not answer the first one.
type remote struct{ keys []string }

func (r *remote) call(key string) error {
	if r.keys = append(r.keys, key); len(r.keys) == 1 {
		return errNoAnswer
	}
	return nil
}

func (r *remote) Charge(_ context.Context, key string, p Payment) (Receipt, error) {
	return Receipt{Number: p.Amount}, r.call(key)
}

func (r *remote) FindByReference(context.Context, string) (Receipt, bool, error) {
	return Receipt{Number: 7}, len(r.keys) > 0, nil
}

func (*remote) RaiseFence(context.Context, string, uint32) error        { return nil }
func (*remote) Find(context.Context, string) (string, bool, error)      { return "", false, nil }
func (*remote) Open(context.Context, string, uint32) (string, error)    { return "open", nil }
func (r *remote) Send(_ context.Context, key, _ string) (string, error) { return "sent", r.call(key) }

// requireOneKey: the call was repeated under its key, because the first one had no answer.
func (r *remote) requireOneKey(t *testing.T) {
	t.Helper()
	if len(r.keys) != 2 || r.keys[0] != r.keys[1] {
		t.Errorf("the keys of the calls are %q, want one key twice", r.keys)
	}
}

// twice runs a fragment twice with one key: the second answer is a replay.
func twice(t *testing.T, fragment func() (replayed bool, err error)) {
	t.Helper()
	for _, want := range []bool{false, true} {
		check.Result(fragment())(t, want, "replayed")
	}
}

// repeated runs a fragment whose first call of a remote system has no answer, and then twice.
func repeated(t *testing.T, of *remote, fragment func() (replayed bool, err error)) {
	t.Helper()
	_, err := fragment()
	check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the lost reply")
	twice(t, fragment)
	of.requireOneKey(t)
}

// onSQLite opens a new database, and an engine on it.
func onSQLite(t *testing.T, operations ...semel.Declared) (*sql.DB, *semel.Engine[*sql.Tx]) {
	t.Helper()
	db := must(sqlite.Open(filepath.Join(t.TempDir(), "records.db")))
	t.Cleanup(func() { db.Close() })
	must(0, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	return db, must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Operations: operations}))
}

func TestFragmentsOfReadme(t *testing.T) {
	_, engine := onSQLite(t, pay)
	ctx, userID, key, req := t.Context(), "ann", "k", newGroup{"friends"}
	createGroup := semel.Define("create_group", semel.OperationOptions[newGroup]{})
	insertGroup := func(context.Context, *sql.Tx, newGroup) (Group, error) { return Group{1}, nil }
	twice(t, func() (bool, error) {
		// README.md: group, replayed, err
		return replayed, err
	})
}

func TestFragmentsOfPostgreSQL(t *testing.T) {
	ctx, databaseURL := t.Context(), durableDatabase(t)
	// README.md: pool := must(
	t.Cleanup(pool.Close)
	must(pool.Exec(ctx, `CREATE TABLE groups (id bigint PRIMARY KEY, name text NOT NULL)`))
	req := newGroup{"friends"}
	call := semel.Define("create_group", semel.OperationOptions[newGroup]{}).Call(semel.ScopeOf("ann"), "k", req)
	twice(t, func() (bool, error) {
		// docs/choosing.md: group, replayed, err := semel.DoBatch
		return replayed, err
	})
	s := must(postgres.New(pool, postgres.Options{}))
	_, stopWatch, err := func() (*semel.Engine[pgx.Tx], func() error, error) {
		// docs/observability.md: telemetry, err
		return engine, stop, err
	}()
	check.Require(t, err)
	check.NoError(t, stopWatch())
	ctx, stop := context.WithCancel(ctx)
	stop()
	{
		// docs/retention.md: records :=
		check.ErrorIs(t, err, context.Canceled, "the task that creates partitions")
	}
}

func TestFragmentsOfPostgreSQLWithDatabaseSQL(t *testing.T) {
	ctx, databaseURL, scope, key, in := t.Context(), durableDatabase(t), semel.ScopeOf("ann"), "k", itemOrder{Item: "book"}
	placeOrder := semel.Define("place_item", semel.OperationOptions[itemOrder]{})
	insert := func(ctx context.Context, tx *sql.Tx, in itemOrder) (id int64, err error) {
		if in.Item == "" {
			return 0, errUnknownItem
		}
		return 7, tx.QueryRowContext(ctx, `SELECT 7`).Scan(&id)
	}
	// docs/recipes/orm.md: db := must(
	t.Cleanup(func() { db.Close() })
	place := func() (bool, error) {
		// docs/recipes/orm.md: order, replayed, err
		return replayed, err
	}
	twice(t, place)
	key, in.Item = "k2", ""
	for _, want := range []bool{false, true} {
		_, err := place()
		check.Fails(t, err, "an unknown item")
		check.Equal(t, semel.Replayed(err), want, "the failure is replayed")
	}
}

// TestFragmentsOfStores checks that the pool has all servers, without a connection to them.
func TestFragmentsOfStores(t *testing.T) {
	t.Run("a pool that follows a failover", func(t *testing.T) {
		ctx := t.Context()
		check.NoError(t, func() error {
			// docs/stores.md: config, err
			if err != nil {
				return err
			}
			defer pool.Close()
			to := pool.Config().ConnConfig
			if hosts := len(to.Fallbacks); to.Host != "db1" || hosts < 2 || to.OnNotice == nil {
				t.Errorf("the pool connects to %s and %d others, want db1 and at least two others", to.Host, hosts)
			}
			return nil
		}())
	})
	t.Run("Redis", func(t *testing.T) {
		addr := realtest.OwnRedis(t, "appendonly yes", "appendfsync always").Addr()
		check.NoError(t, func() error {
			// docs/stores.md: client :=
			if err != nil {
				return err
			}
			greet := semel.Define("greet", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "in")
			twice(t, func() (replayed bool, err error) {
				_, replayed, err = semel.Do(t.Context(), runner, greet, func(context.Context) (string, error) { return "hello", nil })
				return replayed, err
			})
			return runner.Close(t.Context())
		}())
	})
}

// docs/choosing.md: var importOrders

// docs/choosing.md: var chargeCard

var bank, plant = new(remote), new(remote)

// docs/choosing.md: var transfer

// docs/choosing.md: var openValve

// docs/choosing.md: var warmCache

var (
	buildReport = semel.Define("build_report", semel.OperationOptions[Page]{Policy: semel.Atomic()})
	sendFax     = semel.Define("send_fax", semel.OperationOptions[Document]{})
)

// faxLine is busy at the first call.
type faxLine struct{ calls int }

func (f *faxLine) Send(context.Context, Document) (string, error) {
	if f.calls++; f.calls == 1 {
		return "", errLineBusy
	}
	return "1", nil
}

func TestFragmentsOfChoosing(t *testing.T) {
	_, engine := onSQLite(t, importOrders, transfer, openValve, warmCache)
	ctx, scope, key := t.Context(), semel.ScopeOf("ann"), "k"
	t.Run("slow work that changes nothing", func(t *testing.T) {
		req, render := Page{}, func(context.Context, Page) (Report, error) { return Report{"text"}, nil }
		saveReport := func(context.Context, *sql.Tx, Report) error { return nil }
		twice(t, func() (bool, error) {
			// docs/choosing.md: report, replayed, err
			return replayed, err
		})
	})
	t.Run("Keyed", func(t *testing.T) {
		provider, p := new(remote), Payment{5}
		repeated(t, provider, func() (bool, error) {
			// docs/choosing.md: receipt, replayed, err
			return replayed, err
		})
	})
	t.Run("Heal", func(t *testing.T) {
		call := transfer.Call(scope, key, Payment{5})
		got, _, err := semel.Do(ctx, engine, call, func(ctx context.Context) (Receipt, error) { return bank.Charge(ctx, key, Payment{5}) })
		check.Result(got, err)(t, Receipt{7}, "the receipt that the bank has after its lost reply")
	})
	t.Run("Hold", func(t *testing.T) {
		fax, doc := new(faxLine), Document{}
		send := func() (bool, error) {
			// docs/choosing.md: number, replayed, err
			return replayed, err
		}
		_, err := send()
		check.ErrorIs(t, err, errLineBusy, "the first call")
		twice(t, send)
	})
}

var (
	orderColumns = func(row guard.Row) (o shopOrder, state string, err error) {
		err = row.Scan(&o.ID, &o.State)
		return o, o.State, err
	}
	userColumns = func(row guard.Row) (u shopUser, err error) { err = row.Scan(&u.Card, &u.Name); return u, err }
)

// docs/choosing-a-mode.md: var orderStates

// TestFragmentsOfModes: SQLite understands the statements of guard rows for MySQL, apart from
// the schema.
func TestFragmentsOfModes(t *testing.T) {
	db, engine := onSQLite(t)
	for _, text := range []string{
		guard.Schema(guard.SQLite), `CREATE TABLE users (card TEXT PRIMARY KEY, name TEXT)`,
		`CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT)`, `INSERT INTO orders VALUES ('o-1', 'new')`,
	} {
		must(db.ExecContext(t.Context(), text))
	}
	ctx, scanOrder, scanUser, domain := t.Context(), orderColumns, userColumns, db
	id, card, name, valveID, v, p := "o-1", "4711", "Ann", "valve-3", Valve{}, Payment{5}
	insertTransfer := func(context.Context, *sql.Tx, Payment) (Receipt, error) { return Receipt{9}, nil }
	for range 2 {
		// docs/choosing-a-mode.md: order, err
		check.NoError(t, err, "the order is paid, or was paid before")
	}
	twice(t, func() (bool, error) {
		tx := must(db.BeginTx(ctx, nil))
		// docs/choosing-a-mode.md: user, existed, err
		return existed, errors.Join(err, tx.Commit())
	})
	twice(t, func() (bool, error) {
		// docs/choosing-a-mode.md: opened, replayed, err
		return replayed, err
	})
	twice(t, func() (bool, error) {
		// docs/choosing-a-mode.md: transfers :=
		call := transfer.Call(semel.ScopeOf("ann"), "k", p)
		// docs/choosing-a-mode.md: receipt, replayed, err
		return replayed, err
	})
}
