package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/postgres"
)

// connect returns a pool of the database, and the same database as a *sql.DB.
func connect(t *testing.T, url string, change ...func(*pgxpool.Config)) (*pgxpool.Pool, *sql.DB) {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { db.Close() })
	return pool, db
}

// relations lists the relations in the schema public.
func relations(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return column[string](t, db, `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relname`)
}

func mustBeMigratedOncePostgres(t *testing.T, pool *pgxpool.Pool, db *sql.DB) {
	t.Helper()
	want := []string{
		"semel_expires", "semel_leases", "semel_migrations", "semel_migrations_id_seq", "semel_migrations_pkey",
		"semel_notes", "semel_notes_id_to_owner_to_attempt_to_state_key", "semel_notes_note_seq", "semel_notes_pkey",
		"semel_queue", "semel_rare", "semel_record_view", "semel_records", "semel_records_pkey", "semel_salt", "semel_salt_pkey",
	}
	if diff := cmp.Diff(want, relations(t, db)); diff != "" {
		t.Errorf("the schema differs (-want +got):\n%s", diff)
	}
	if got := column[int](t, db, `SELECT version_id FROM semel_migrations ORDER BY id`); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("versions %v are recorded, want 0 to 3, once each", got)
	}
	two := pool.Config() // a store needs one more connection than a migration
	two.MaxConns = 2
	wider, err := pgxpool.NewWithConfig(t.Context(), two)
	if err != nil {
		t.Fatal(err)
	}
	defer wider.Close()
	s, err := postgres.New(wider, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Capabilities(t.Context()); err != nil {
		t.Errorf("the store returns %v", err)
	}
}

// TestPostgres: directly and behind PgBouncer with one connection. A second
// call changes nothing.
func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	server := realtest.Postgres(t)
	direct, behind := server.Database(t), server.Database(t)
	for _, through := range []struct {
		url  string
		mode pgx.QueryExecMode
	}{
		{direct, pgx.QueryExecModeCacheStatement},
		{realtest.PgBouncer(t, behind), pgx.QueryExecModeExec},
	} {
		pool, db := connect(t, through.url, func(c *pgxpool.Config) {
			c.MaxConns, c.ConnConfig.DefaultQueryExecMode = 1, through.mode
		})
		for range 3 {
			if err := migrate.Postgres(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			mustBeMigratedOncePostgres(t, pool, db)
		}
	}
}

func TestTenConcurrentProcessesOnPostgres(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	mustMigrateAtOnce(t, url)
	pool, db := connect(t, url)
	mustBeMigratedOncePostgres(t, pool, db)
}

// TestPostgresIsAtomic: after a migration that fails, because a table of its
// name exists, nothing has changed.
func TestPostgresIsAtomic(t *testing.T) {
	t.Parallel()
	pool, db := connect(t, realtest.Postgres(t).Database(t))
	mustExec(t, db, `CREATE TABLE semel_notes (mine integer)`)
	if err := migrate.Postgres(t.Context(), pool); err == nil {
		t.Error("Postgres = nil with another table of that name, want an error")
	}
	if got := relations(t, db); !slices.Equal(got, []string{"semel_notes"}) {
		t.Errorf("after an error the schema is %v, want what it was", got)
	}
	mustExec(t, db, `DROP TABLE semel_notes`)
	if err := migrate.Postgres(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	mustBeMigratedOncePostgres(t, pool, db)
}

// TestPostgresWaitsForAnotherMigration, but no longer than ctx lasts. It does
// not wait if all migrations have run.
func TestPostgresWaitsForAnotherMigration(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	pool, db := connect(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	release := holdMigrations(t, pool)
	var waits sync.WaitGroup
	waits.Go(func() {
		if err := migrate.Postgres(ctx, pool); !errors.Is(err, context.Canceled) {
			t.Errorf("Postgres whose context ends while it waits = %v, want its error", err)
		}
	})
	waiting(t, db, 1)
	cancel()
	waits.Wait()
	waits.Go(func() {
		if err := migrate.Postgres(t.Context(), pool); err != nil {
			t.Error(err)
		}
	})
	waiting(t, db, 1)
	release()
	waits.Wait()
	mustBeMigratedOncePostgres(t, pool, db)

	defer holdMigrations(t, pool)()
	if err := migrate.Postgres(t.Context(), pool); err != nil {
		t.Errorf("Postgres with nothing to do, while another migration holds the lock = %v", err)
	}
}

// holdMigrations holds the advisory lock until release is called.
func holdMigrations(t *testing.T, pool *pgxpool.Pool) (release func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, migrate.PostgresLock); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// waiting blocks until n sessions of this database wait for the lock.
func waiting(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	const count = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	for !slices.Equal(column[int](t, db, count), []int{n}) {
		if t.Context().Err() != nil {
			t.Fatal("no session waits")
		}
	}
}

// TestPostgresIgnoresRoleTimeouts: the role's timeouts for statements and locks
// do not apply to migrations.
func TestPostgresIgnoresRoleTimeouts(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	_, other := connect(t, url)
	bounded, _ := connect(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["lock_timeout"] = "1ms"
		c.ConnConfig.RuntimeParams["statement_timeout"] = "100ms"
	})
	direct, _ := connect(t, url)
	release := holdMigrations(t, direct)
	var waits sync.WaitGroup
	waits.Go(func() {
		if err := migrate.Postgres(t.Context(), bounded); err != nil {
			t.Errorf("Postgres with a lock timeout = %v", err)
		}
	})
	waiting(t, other, 1)
	mustExec(t, other, `SELECT pg_sleep(0.2)` /* longer than the statement timeout */)
	release()
	waits.Wait()
}

// TestPostgresFilesRunByAnotherTool: other tools can run the files, up and
// down.
func TestPostgresFilesRunByAnotherTool(t *testing.T) {
	t.Parallel()
	_, db := connect(t, realtest.Postgres(t).Database(t))
	p, err := goose.NewProvider(goose.DialectPostgres, db, postgres.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"goose_db_version", "goose_db_version_id_seq", "goose_db_version_pkey"}
	if got := relations(t, db); !slices.Equal(got, want) {
		t.Errorf("after going down the schema is %v, want no table of Semel", got)
	}
}
