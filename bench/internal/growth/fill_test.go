package growth_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/growth"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
)

func connect(t *testing.T, server *realtest.Server) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func texts(t *testing.T, pool *pgxpool.Pool, sql string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const (
	sqlIndexes = "select indexdef from pg_indexes where tablename = 'semel_records' order by 1"
	sqlStrict  = "select conname || pg_get_constraintdef(oid) from pg_constraint where conrelid = 'semel_records'::regclass order by 1"
)

// A table that was filled has as many records as it is to have, and all its indexes and
// constraints.
func TestAFilledTableIsAsTheStoreMadeIt(t *testing.T) {
	t.Parallel()
	server := realtest.OwnPostgres(t)
	filledAsMade(t, connect(t, server), 100, false)
	filledAsMade(t, connect(t, server), growth.Small+1, true)
}

func filledAsMade(t *testing.T, pool *pgxpool.Pool, records int, ordered bool) {
	t.Helper()
	if err := pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}); err != nil {
		t.Fatal(err)
	}
	before := slices.Concat(texts(t, pool, sqlIndexes), texts(t, pool, sqlStrict))
	if err := growth.Filled(t.Context(), pool, records, ordered, caller()); err != nil {
		t.Fatal(err)
	}
	if after := slices.Concat(texts(t, pool, sqlIndexes), texts(t, pool, sqlStrict)); !slices.Equal(after, before) {
		t.Errorf("indexes and constraints are %q, want %q", after, before)
	}
	if got, want := texts(t, pool, "select count(*)::text from semel_records")[0], fmt.Sprint(records+1); got != want {
		t.Errorf("there are %s records, want %s", got, want)
	}
	if alike := texts(t, pool, "select distinct pg_column_size(r)::text from semel_records r"); len(alike) != 1 {
		t.Errorf("records are %q bytes long, want all alike", alike)
	}
}

// What has no room is not begun: ten million records in each of two tables take 25 GB.
func TestWhatHasNoRoomIsNotBegun(t *testing.T) {
	t.Parallel()
	const both, giga = 20_000_000, 1_000_000_000
	if err := growth.Fits(both, 26*giga); err != nil {
		t.Errorf("26 GB are free: %v", err)
	}
	if err := growth.Fits(both, 24*giga); err == nil || err.Error() != "it takes 25 GB of disk, and 24 are free" {
		t.Errorf("24 GB are free: %v", err)
	}
}

func caller() *contest.Caller {
	return &contest.Caller{N: 0, Rand: rand.New(rand.NewPCG(1, 2))}
}

// A key with a time is one that an operation can read the time out of.
func TestATimeKeyHasTheTime(t *testing.T) {
	t.Parallel()
	before := time.Now().Truncate(time.Millisecond)
	key := growth.TimeKey(caller())
	at, ok := semel.UUIDv7Time(key)
	if !ok || at.Before(before) || at.After(time.Now()) {
		t.Errorf("UUIDv7Time(%q) = %v, %t; want %v or a little later", key, at, ok, before)
	}
}
