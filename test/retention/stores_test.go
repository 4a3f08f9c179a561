package retention_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	rotations(t, ledger.Memory(memory.Options{}), true)
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	rotations(t, ledger.SQLite(t), true)
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "mysql")
	name := realtest.MariaDB(t).Database(t)
	rotations(t, ledger.MariaDB(t, name, name), true)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			url := realtest.Postgres(t).Database(t)
			rotations(t, ledger.Postgres(t, url, url, postgres.Options{Isolation: level}), level == pgx.ReadCommitted)
		})
	}
}
