package postgres_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	pool := check.Must(pgxpool.New(t.Context(), "postgres://localhost/never_connected"))(t)
	defer pool.Close()
	if s, err := postgres.New(nil, postgres.Options{}); s != nil || err == nil {
		t.Errorf("New without a pool = %v, %v, want an error", s, err)
	}
	single := check.Must(pgxpool.New(t.Context(), "postgres://localhost/never_connected?pool_max_conns=1"))(t)
	defer single.Close()
	if s, err := postgres.New(single, postgres.Options{}); s != nil || err == nil || !strings.Contains(err.Error(), "MaxConns") {
		t.Errorf("New with a pool of one connection = %v, %v, want an error that names MaxConns", s, err)
	}
	for _, level := range []pgx.TxIsoLevel{pgx.ReadUncommitted, "snapshot"} {
		_, err := postgres.New(pool, postgres.Options{Isolation: level})
		if err == nil || !strings.Contains(err.Error(), "Options.Isolation") || !strings.Contains(err.Error(), string(level)) {
			t.Errorf("New with the level %q = %v, want an error that names the field and the level", level, err)
		}
	}
}

// Without the tables every method returns an error that names the migration.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, realtest.Postgres(t).Database(t)), postgres.Options{})
	ctx, c := t.Context(), create("key", store.Pending, 1)
	_, capabilities := s.Capabilities(ctx)
	_, swap := s.Swap(ctx, []store.Change{c})
	_, get := s.Get(ctx, []store.ID{c.To.ID})
	_, scan := s.Scan(ctx, store.Query{})
	_, purge := s.Purge(ctx, 1)
	_, dequeue := s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1})
	_, again := s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1, Reread: true})
	_, counts := s.Counts(ctx)
	_, noted := s.SwapNoted(ctx, c, store.Note{})
	_, notes := s.Notes(ctx, c.To.ID)
	verdict, atomic := s.Atomic(ctx, c.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
		t.Error("run is called without the tables")
		return nil, nil
	})
	for i, err := range []error{capabilities, swap, get, scan, purge, dequeue, again, counts, noted, notes, atomic} {
		if !errors.Is(err, postgres.ErrNoSchema) || !strings.Contains(err.Error(), "migrate/postgres") {
			t.Errorf("call %d without the tables = %v, want ErrNoSchema", i, err)
		}
	}
	check.Equal(t, verdict, store.NotCommitted, "Atomic without the tables")
}

// The server's settings decide which capabilities the store reports.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	on := []string{"fsync=on", "synchronous_commit=on", "full_page_writes=on"}
	safe := migrated(t, realtest.OwnPostgres(t, on...))
	torn := migrated(t, realtest.OwnPostgres(t, append(on, "full_page_writes=off")...))
	quick := database(t) // the shared server does not sync
	mustExec(t, connect(t, safe), `CREATE SCHEMA standby;
CREATE FUNCTION standby.pg_is_in_recovery() RETURNS boolean RETURN true`, pgx.QueryExecModeSimpleProtocol)
	for _, row := range []struct {
		url, setting, value string
		linearizable        bool
		survives            store.Failure
		because             string
	}{
		{safe, "", "", true, store.PowerLoss, noStandbys},
		{safe, "synchronous_commit", "off", true, store.NoFailure, "synchronous_commit is off (set by the client: the connection string, PGOPTIONS or RuntimeParams)"},
		{safe, "synchronous_commit", "local", true, store.PowerLoss, "synchronous_commit is local (set by the client: the connection string, PGOPTIONS or RuntimeParams)"},
		{safe, "search_path", "standby, pg_catalog, public", false, store.PowerLoss, noStandbys},
		{torn, "", "", true, store.ProcessEnd, "full_page_writes is off (set on the server's command line)"},
		{quick, "synchronous_commit", "on", true, store.ProcessEnd, "full_page_writes is off (set on the server's command line); fsync is off (set on the server's command line)"},
	} {
		pool := connect(t, row.url, func(c *pgxpool.Config) {
			if row.setting != "" {
				c.ConnConfig.RuntimeParams[row.setting] = row.value
			}
		})
		got, err := newStore(t, pool, postgres.Options{}).Capabilities(t.Context())
		want := store.Capabilities{
			Connections: pool, Exclusion: store.ExcludesRecord, Ordered: true, Linearizable: row.linearizable, Survives: row.survives, SurvivesBecause: row.because, ConcurrentSwaps: 2, MaxOutcome: 1 << 20, MaxBatch: 1000,
		}
		if err != nil || got != want {
			t.Errorf("Capabilities with %+v = %+v, %v, want %+v", row, got, err, want)
		}
	}
}

// A server that only speaks the protocol of PostgreSQL may accept the lock functions
// without locking.
func TestOtherProductsAreRejected(t *testing.T) {
	t.Parallel()
	url := database(t)
	mustExec(t, connect(t, url), `CREATE SCHEMA other;
CREATE FUNCTION other.version() RETURNS text RETURN 'CockroachDB CCL v21.2.0'`, pgx.QueryExecModeSimpleProtocol)
	pool := connect(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = "other, pg_catalog, public"
	})
	_, err := newStore(t, pool, postgres.Options{}).Capabilities(t.Context())
	if !errors.Is(err, postgres.ErrNotPostgres) || !strings.Contains(err.Error(), "CockroachDB CCL v21.2.0") {
		t.Errorf("Capabilities of CockroachDB = %v, want ErrNotPostgres with its version", err)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(postgres.Schema(), "*.sql")
	if err != nil || len(names) == 0 {
		t.Errorf("Schema has the files %v, %v", names, err)
	}
}
