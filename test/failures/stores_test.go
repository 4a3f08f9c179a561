package failures_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// database is a store with a table of effects in the same database.
type database[Tx any] struct {
	storetest.Subject[Tx]

	// Lease is for leaders that are to lose it. It is long enough to begin an attempt.
	Lease time.Duration

	// outside is a store without transactions, whose effects are in this process. Nil:
	// the store of Subject.
	outside store.Store
}

func TestMemory(t *testing.T) {
	t.Parallel()
	failureClasses(t, onSubject(ledger.Memory(memory.Options{}), 500*time.Millisecond))
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	failureClasses(t, onSubject(ledger.SQLite(t), 500*time.Millisecond))
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	url := realtest.Postgres(t).Database(t)
	failureClasses(t, inPostgres(t, url, url))
}

func TestPostgresSQL(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	url := realtest.Postgres(t).Database(t)
	failureClasses(t, onSubject(ledger.PostgresSQL(t, url, url, postgres.Options{}), 2*time.Second))
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "mysql")
	name := realtest.MariaDB(t).Database(t)
	failureClasses(t, onSubject(ledger.MariaDB(t, name, name), 2*time.Second))
}

func TestRedis(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "redis")
	failureClasses(t, outsideOf(servers.Redis(t).Store(t)))
}

func TestEtcd(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "etcd")
	failureClasses(t, outsideOf(servers.Etcd(t).Store(t)))
}

// noTx is the type of transactions of a store that has none.
type noTx struct{}

// outsideOf returns a store without transactions.
func outsideOf(s store.Store) database[noTx] {
	var mu sync.Mutex
	effects := make(map[string]int)
	h := database[noTx]{Lease: 2 * time.Second, outside: s}
	h.Effect = func(_ context.Context, _ noTx, key string) error {
		mu.Lock()
		defer mu.Unlock()
		effects[key]++
		return nil
	}
	h.Effects = func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		return effects[key]
	}
	return h
}

// inPostgres returns a new database at url, which the engine reaches by another
// address; effects are counted directly.
func inPostgres(t testing.TB, url, by string) database[pgx.Tx] {
	t.Helper()
	return onSubject(ledger.Postgres(t, url, by, postgres.Options{}), 2*time.Second)
}

func onSubject[Tx any](s storetest.Subject[Tx], lease time.Duration) database[Tx] {
	return database[Tx]{Subject: s, Lease: lease}
}
