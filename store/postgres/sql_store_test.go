package postgres_test

import (
	"context"
	"database/sql"
	"net"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

func TestSQLContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	url := database(t)
	runSQL(t, url, url, pgx.QueryExecModeCacheStatement, nil)
}

func TestSQLContractBehindPgBouncer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "pgbouncer")
	url := database(t)
	runSQL(t, url, realtest.PgBouncer(t, url), pgx.QueryExecModeExec, storetest.CallParts())
}

// runSQL is run for a SQLStore.
func runSQL(t *testing.T, url, address string, m pgx.QueryExecMode, parts []string) {
	t.Helper()
	config := check.Must(pgx.ParseConfig(address))(t)
	proxy := realtest.NewProxy(t, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
	direct, through := connect(t, url), openSQL(t, proxy.URL(address), m)
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] {
		subject := sqlSubject(t, direct, through)
		subject.Lose = func() func() bool {
			fault := proxy.EatReply(durable)
			return func() bool { return !fault.Disarm() }
		}
		return subject
	}, parts...)
}

// beginSQLAt begins transactions of the program at each isolation level.
func beginSQLAt(db *sql.DB) map[string]storetest.BeginFunc[*sql.Tx] {
	levels := make(map[string]storetest.BeginFunc[*sql.Tx])
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		levels[level.String()] = func(ctx context.Context) (*sql.Tx, func() error, func() error, error) {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			return tx, tx.Commit, tx.Rollback, err
		}
	}
	return levels
}

func sqlSubject(t testing.TB, direct *pgxpool.Pool, through *sql.DB) storetest.Subject[*sql.Tx] {
	t.Helper()
	mustExec(t, direct, `TRUNCATE semel_records, semel_notes, effects`)
	s := newSQLStore(t, through, postgres.Options{})
	return storetest.Subject[*sql.Tx]{
		Begin:   beginSQLAt(through),
		Store:   s,
		Effect:  sqlEffect,
		Effects: func(key string) int { return effects(t, direct, key) },
		Batches: storetest.BatchesOf(s, batchOf),
	}
}

// openSQL returns a database that is closed in the end.
func openSQL(t testing.TB, address string, m pgx.QueryExecMode) *sql.DB {
	t.Helper()
	config := check.Must(pgx.ParseConfig(address))(t)
	config.DefaultQueryExecMode = m
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { db.Close() })
	return db
}

func newSQLStore(t testing.TB, db *sql.DB, o postgres.Options) *postgres.SQLStore {
	t.Helper()
	s, err := postgres.NewSQL(db, o)
	check.Require(t, err, "NewSQL")
	return s
}

func sqlEffect(ctx context.Context, tx *sql.Tx, key string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO effects (key) VALUES ($1)`, key)
	return err
}
