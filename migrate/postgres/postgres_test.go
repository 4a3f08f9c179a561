package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// connect returns a pool of the database, and the same database as a *sql.DB.
func connect(t *testing.T, url string, change ...func(*pgxpool.Config)) (*pgxpool.Pool, *sql.DB) {
	t.Helper()
	config := check.Must(pgxpool.ParseConfig(url))(t)
	for _, c := range change {
		c(config)
	}
	pool := check.Must(pgxpool.NewWithConfig(t.Context(), config))(t)
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

// mustBeMigratedOnce requires that the schema public has the tables of each
// prefix, and nothing else, and that each migration has run once.
func mustBeMigratedOnce(t *testing.T, pool *pgxpool.Pool, db *sql.DB, prefixes ...string) {
	t.Helper()
	if prefixes == nil {
		prefixes = []string{"semel_"}
	}
	var want []string
	for _, prefix := range prefixes {
		for _, name := range []string{
			"dequeued", "expires", "leases", "migrations", "migrations_id_seq", "migrations_pkey",
			"notes", "notes_id_to_owner_to_attempt_to_state_key", "notes_note_seq", "notes_pkey",
			"outbox", "outbox_lane", "outbox_notes", "outbox_notes_note_seq", "outbox_notes_pkey", "outbox_parked", "outbox_parked_pkey", "outbox_pkey", "outbox_seq_seq",
			"queue", "rare", "record_view", "records", "records_pkey", "salt", "salt_pkey",
		} {
			want = append(want, prefix+name)
		}
		if got := column[int](t, db, `SELECT version_id FROM `+prefix+`migrations ORDER BY id`); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
			t.Errorf("versions %v are recorded, want 1 to 6, once each", got)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, relations(t, db)); diff != "" {
		t.Errorf("the schema differs (-want +got):\n%s", diff)
	}
	two := pool.Config() // a store needs one more connection than a migration
	two.MaxConns = 2
	wider := check.Must(pgxpool.NewWithConfig(t.Context(), two))(t)
	defer wider.Close()
	s := check.Must(postgres.New(wider, postgres.Options{}))(t)
	if _, err := s.Capabilities(t.Context()); err != nil {
		t.Errorf("the store returns %v", err)
	}
}

// TestUp: directly and behind PgBouncer with one connection. A second
// call changes nothing.
func TestUp(t *testing.T) {
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
			check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
			mustBeMigratedOnce(t, pool, db)
		}
	}
}

// TestUpIsAtomic: after a migration that fails, because a table of its
// name exists, nothing has changed.
func TestUpIsAtomic(t *testing.T) {
	t.Parallel()
	pool, db := connect(t, realtest.Postgres(t).Database(t))
	mustExec(t, db, `CREATE TABLE semel_notes (mine integer)`)
	check.Fails(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}), "Up with another table of that name")
	if got := relations(t, db); !slices.Equal(got, []string{"semel_notes"}) {
		t.Errorf("after an error the schema is %v, want what it was", got)
	}
	mustExec(t, db, `DROP TABLE semel_notes`)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	mustBeMigratedOnce(t, pool, db)
}

// TestUpWaitsForAnotherMigration, but no longer than ctx lasts. It does
// not wait if all migrations have run.
func TestUpWaitsForAnotherMigration(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	pool, db := connect(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	release := holdMigrations(t, pool)
	var waits sync.WaitGroup
	waits.Go(func() {
		if err := pgmigrate.Up(ctx, pool, pgmigrate.Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Up whose context ends while it waits = %v, want its error", err)
		}
	})
	waiting(t, db, 1)
	cancel()
	waits.Wait()
	waits.Go(func() {
		check.NoError(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	})
	waiting(t, db, 1)
	release()
	waits.Wait()
	mustBeMigratedOnce(t, pool, db)

	defer holdMigrations(t, pool)()
	check.NoError(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}), "Up with nothing to do, while another migration holds the lock")
}

// holdMigrations holds the advisory lock until release is called.
func holdMigrations(t *testing.T, pool *pgxpool.Pool) (release func()) {
	t.Helper()
	tx := check.Must(pool.Begin(t.Context()))(t)
	check.Must(tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, pgmigrate.Lock))(t)
	return func() {
		check.NoError(t, tx.Rollback(context.WithoutCancel(t.Context())))
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

// TestUpIgnoresRoleTimeouts: the role's timeouts for statements and locks
// do not apply to migrations.
func TestUpIgnoresRoleTimeouts(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	_, other := connect(t, url)
	mustExec(t, other, `CREATE FUNCTION no_timeouts() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
IF current_setting('statement_timeout') <> '0' OR current_setting('lock_timeout') <> '0' THEN RAISE 'a timeout applies'; END IF; END $$;
CREATE EVENT TRIGGER no_timeouts ON ddl_command_start EXECUTE FUNCTION no_timeouts()`)
	bounded, _ := connect(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["lock_timeout"] = "1ms"
		c.ConnConfig.RuntimeParams["statement_timeout"] = "5s"
	})
	direct, _ := connect(t, url)
	release := holdMigrations(t, direct)
	var waits sync.WaitGroup
	waits.Go(func() {
		check.NoError(t, pgmigrate.Up(t.Context(), bounded, pgmigrate.Options{}), "Up")
	})
	waiting(t, other, 1)
	mustExec(t, other, `SELECT pg_sleep(6)`) // longer than both timeouts
	release()
	waits.Wait()
}

// gooseTable is the table that earlier versions of Semel wrote, by goose.
const gooseTable = `CREATE TABLE semel_migrations (
  id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
  version_id bigint NOT NULL,
  is_applied boolean NOT NULL,
  tstamp timestamp NOT NULL DEFAULT now()
);
INSERT INTO semel_migrations (version_id, is_applied) VALUES (0, true), (1, true);`

// TestTableOfAnEarlierVersion: the migrations that an earlier version recorded do not
// run again.
func TestTableOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	pool, db := connect(t, realtest.Postgres(t).Database(t))
	first := check.Must(fs.ReadFile(postgres.Schema(), "00001_records.up.sql"))(t)
	mustExec(t, db, string(first)+gooseTable)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	if got := column[int](t, db, `SELECT version_id FROM semel_migrations ORDER BY id`); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("versions %v are recorded, want 0 to 6, once each", got)
	}
}

// TestFilesRunByAnotherTool: another tool can run each file as one command.
func TestFilesRunByAnotherTool(t *testing.T) {
	t.Parallel()
	pool, db := connect(t, realtest.Postgres(t).Database(t))
	names := check.Must(fs.Glob(postgres.Schema(), "*.sql"))(t)
	for _, name := range names {
		text := check.Must(fs.ReadFile(postgres.Schema(), name))(t)
		mustExec(t, db, string(text))
	}
	s := check.Must(postgres.New(pool, postgres.Options{}))(t)
	if _, err := s.Capabilities(t.Context()); err != nil {
		t.Errorf("the store returns %v", err)
	}
}

// TestNames: the tables can be in another schema and have another prefix, beside those
// with the default names.
func TestNames(t *testing.T) {
	t.Parallel()
	pool, db := connect(t, realtest.Postgres(t).Database(t))
	for _, o := range []pgmigrate.Options{{}, {Prefix: "app_"}, {Schema: "other"}, {Schema: "third", Prefix: "app_"}} {
		for range 2 { // a second call changes nothing
			check.Require(t, pgmigrate.Up(t.Context(), pool, o), "Up with %+v", o)
		}
	}
	mustBeMigratedOnce(t, pool, db, "semel_", "app_")
	tables := column[string](t, db, `SELECT schemaname || '.' || tablename FROM pg_tables
WHERE schemaname IN ('other', 'third') ORDER BY 1`)
	want := []string{
		"other.semel_migrations", "other.semel_notes", "other.semel_outbox", "other.semel_outbox_notes", "other.semel_outbox_parked", "other.semel_records", "other.semel_salt",
		"third.app_migrations", "third.app_notes", "third.app_outbox", "third.app_outbox_notes", "third.app_outbox_parked", "third.app_records", "third.app_salt",
	}
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Errorf("the tables differ (-want +got):\n%s", diff)
	}
}

func TestInvalidNames(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]pgmigrate.Options{"Options.Schema": {Schema: `a"`}, "Options.Prefix": {Prefix: "A"}} {
		if err := pgmigrate.UpSQL(t.Context(), nil, o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("Up with %+v = %v, want an error that names %s", o, err, field)
		}
	}
}

// TestUpSQL: with a pool of database/sql.
func TestUpSQL(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	db := check.Must(sql.Open("pgx", url))(t)
	defer db.Close()
	check.Require(t, pgmigrate.UpSQL(t.Context(), db, pgmigrate.Options{}))
	pool, _ := connect(t, url)
	mustBeMigratedOnce(t, pool, db)
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func column[T any](t *testing.T, db *sql.DB, query string) []T {
	t.Helper()
	rows := check.Must(db.QueryContext(t.Context(), query))(t)
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		check.Require(t, rows.Scan(&one))
		all = append(all, one)
	}
	check.Require(t, rows.Err())
	return all
}
