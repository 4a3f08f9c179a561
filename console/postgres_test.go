package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// openPostgres returns a store in the database at url, and its connections.
func openPostgres(t *testing.T, url string) (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	t.Cleanup(pool.Close)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	return check.Must(postgres.New(pool, postgres.Options{}))(t), pool
}

// 500 records are resolved with their notes, apart from one that has changed.
func TestBulkResolveOnPostgres(t *testing.T) {
	t.Parallel()
	s, _ := openPostgres(t, realtest.Postgres(t).Database(t))
	bulkResolve(t, newRig(t, s), 500)
}

// uncounted is a store that does not count, because counting reads the whole table.
type uncounted struct{ store.Store }

// No page reads the whole table. Counting does, and is cached.
func TestPagesReadNoTableWhole(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	s, pool := openPostgres(t, url)
	g := newRig(t, s)
	for i := range 120 {
		g.run(t, g.charge, fmt.Sprintf("order-%d", i), i%3 == 0)
		g.run(t, g.mail, fmt.Sprintf("welcome-%d", i), i%3 == 0)
	}
	last := g.run(t, g.charge, "last", true)
	before := scansAfter(t, pool, url)
	s, pool = openPostgres(t, url)
	g = newRig(t, uncounted{s})
	paths := append(pages(), "record?id="+last.String(), "records?operation=none", "records?key=last", "records?dead=1",
		"records?key=last&scope=shop+%2F+7", "preview?action=resolve&state=indoubt", "preview?action=redrive", "preview?action=cancel",
		"records?after="+strings.Repeat("5", 32))
	for _, state := range store.States() {
		paths = append(paths, "records?state="+strings.ToLower(state.String()), "records?overdue=1&state="+strings.ToLower(state.String()))
	}
	for _, path := range paths {
		g.get(t, path).has(t, http.StatusOK)
	}
	after := scansAfter(t, pool, url)
	check.Equal(t, after.whole, before.whole, "reads of the whole table")
	if after.byIndex < before.byIndex+int64(len(paths)) {
		t.Errorf("%d pages read the table %d times by an index", len(paths), after.byIndex-before.byIndex)
	}
}

// tableScans counts how often the table of records was read.
type tableScans struct{ whole, byIndex int64 }

// scansAfter closes the sessions of a pool, which report what they have read when they
// end, and returns the sums.
func scansAfter(t *testing.T, pool *pgxpool.Pool, url string) (n tableScans) {
	t.Helper()
	pool.Close()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	realtest.Poll(t, "the end of the sessions", func() bool {
		return check.Must(pgx.CollectExactlyOneRow(check.Must(conn.Query(t.Context(),
			`SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND backend_type = 'client backend'`))(t), pgx.RowTo[bool]))(t)
	})
	check.Require(t, conn.QueryRow(t.Context(),
		`SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'semel_records'`).Scan(&n.whole, &n.byIndex))
	return n
}
