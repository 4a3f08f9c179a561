package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A *sql.DB without a limit of connections, or with one connection, is refused.
func TestNewSQLChecks(t *testing.T) {
	t.Parallel()
	config := check.Must(pgx.ParseConfig("postgres://localhost/unused"))(t)
	limited := func(n int) *sql.DB {
		db := stdlib.OpenDB(*config)
		db.SetMaxOpenConns(n)
		t.Cleanup(func() { db.Close() })
		return db
	}
	for _, row := range []struct {
		db   *sql.DB
		o    postgres.Options
		want string
	}{
		{nil, postgres.Options{}, "the database is nil"},
		{limited(0), postgres.Options{}, "SetMaxOpenConns"},
		{limited(1), postgres.Options{}, "SetMaxOpenConns"},
		{limited(2), postgres.Options{Isolation: "none"}, "Options.Isolation"},
		{limited(2), postgres.Options{}, ""},
	} {
		_, err := postgres.NewSQL(row.db, row.o)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("NewSQL = %v, want an error with %q", err, row.want)
		}
	}
}

// wrappedDriver hides the connections of pgx, as drivers for tracing do.
type wrappedDriver struct{ driver.Connector }

type wrappedConn struct{ driver.Conn }

// Connect wraps a connection.
func (d wrappedDriver) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := d.Connector.Connect(ctx)
	return wrappedConn{conn}, err
}

// A driver that wraps pgx is refused with an error that names the right one.
func TestWrappedDriver(t *testing.T) {
	t.Parallel()
	url := database(t)
	config := check.Must(pgx.ParseConfig(url))(t)
	wrapped := sql.OpenDB(wrappedDriver{stdlib.GetConnector(*config)})
	wrapped.SetMaxOpenConns(2)
	defer wrapped.Close()
	c := create("key", store.Pending, 1)
	s := newSQLStore(t, wrapped, postgres.Options{})
	tx := check.Must(wrapped.BeginTx(t.Context(), nil))(t)
	_, inTx := newSQLStore(t, openSQL(t, url, pgx.QueryExecModeCacheStatement), postgres.Options{}).SwapTx(t.Context(), tx, []store.Change{c})
	_, outside := s.Swap(t.Context(), []store.Change{c})
	for name, err := range map[string]error{"Swap": outside, "SwapTx": inTx} {
		if err == nil || !strings.Contains(err.Error(), "github.com/jackc/pgx/v5/stdlib") {
			t.Errorf("%s with a wrapped driver = %v, want an error that names the driver", name, err)
		}
	}
	if err := tx.Rollback(); err != nil || wrapped.Stats().InUse != 0 {
		t.Errorf("Rollback: %v, and %d connections in use", err, wrapped.Stats().InUse)
	}
}

// tellSQLStory uses what a SQLStore does in its own way, and reads it by another store.
func tellSQLStory(t *testing.T, s *postgres.SQLStore, other *postgres.Store, name string) {
	t.Helper()
	created := batch(name, 17)
	mustAll(t, other, created)
	finished := make([]store.Change, len(created))
	for i, c := range created {
		finished[i] = move(c, store.Succeeded)
	}
	if answers, err := s.Swap(t.Context(), finished); err != nil || !answers[16].Applied(finished[16]) {
		t.Errorf("%s: Swap = %v, want applied", name, err)
	}
	inline, queued := create(name+" inline", store.Succeeded, 1), create(name+" queued", store.Pending, 1)
	for _, want := range []store.Verdict{store.Committed, store.NotCommitted} {
		verdict, err := atomicSQL(t, s, inline.To.ID, func(ctx context.Context, tx *sql.Tx) (*store.Change, error) {
			_, err := s.SwapTx(ctx, tx, []store.Change{queued})
			return &inline, errors.Join(err, sqlEffect(ctx, tx, name))
		})
		if verdict != want || (err == nil) != (want == store.Committed) {
			t.Errorf("%s: Atomic = %v, %v, want %v", name, verdict, err, want)
		}
	}
	if current(t, other, inline) != inline.To.Token || current(t, other, queued) != queued.To.Token {
		t.Errorf("%s: the other store reads other records", name)
	}
	check.Equal(t, effects(t, other.Pool(), name), 1, "%s: effects", name)
}
