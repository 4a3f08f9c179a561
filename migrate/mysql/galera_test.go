package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
)

// Processes at different nodes of a Galera cluster migrate at the same time: each
// migration runs once. Two nodes that create the same view at the same time would stop
// the whole cluster.
func TestUpOnGalera(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.Galera(t)
	for range 5 {
		nodes := cluster.Database(t)
		var all sync.WaitGroup
		for _, name := range nodes {
			db := open(t, name)
			all.Go(func() {
				check.NoError(t, migrate.Up(t.Context(), db, migrate.Options{}), "Up")
			})
		}
		all.Wait()
		db := open(t, nodes[0])
		mustHaveTables(t, db, "semel_guard semel_migrating semel_migrations semel_notes semel_outbox semel_outbox_notes semel_outbox_parked semel_records semel_record_view semel_salt")
		mustBeOnce(t, db)
	}
	t.Run("takeover", func(t *testing.T) { testTakeover(t, cluster.Database(t)) })
}

// testTakeover: a process stops while it migrates. Another process takes over when the
// claim has expired, and the first one notices.
func testTakeover(t *testing.T, nodes []string) {
	t.Helper()
	stopped, next := conn(t, nodes[0]), conn(t, nodes[1])
	a, b := migrate.NewClaim("semel_"), migrate.NewClaim("semel_")
	check.Require(t, migrate.Take(a, t.Context(), stopped), "take a free claim")
	check.NoError(t, migrate.Renew(a, t.Context(), stopped), "renew a claim")
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := migrate.Take(b, brief, next); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("take another process's claim = %v, want the context's error", err)
	}
	const age = `UPDATE semel_migrating SET renewed = renewed - INTERVAL 1 HOUR`
	check.Must(stopped.ExecContext(t.Context(), age))(t)
	next = conn(t, nodes[1])
	check.Require(t, migrate.Take(b, t.Context(), next), "take an expired claim")
	check.ErrorIs(t, migrate.Renew(a, t.Context(), stopped), migrate.ErrClaimLost, "renew a lost claim")
	for _, c := range []struct {
		release string
		rows    int
	}{{migrate.Release(a), 1}, {migrate.Release(b), 0}} {
		check.Must(next.ExecContext(t.Context(), c.release))(t)
		var rows int
		if err := next.QueryRowContext(t.Context(), `SELECT count(*) FROM semel_migrating`).Scan(&rows); err != nil || rows != c.rows {
			t.Errorf("%d claims, %v, want %d", rows, err, c.rows)
		}
	}
}

func conn(t *testing.T, name string) *sql.Conn {
	t.Helper()
	c := check.Must(open(t, name).Conn(t.Context()))(t)
	t.Cleanup(func() { c.Close() })
	return c
}
