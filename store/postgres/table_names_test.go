package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// otherNames are a schema that the search_path does not name, and another prefix.
var otherNames = postgres.Options{Schema: "app", Prefix: "once_"}

// databaseWithOtherNames returns the address of a new database whose tables have
// otherNames, and a table of effects.
func databaseWithOtherNames(t *testing.T) string {
	t.Helper()
	url := realtest.Postgres(t).Database(t)
	pool := connect(t, url)
	o := pgmigrate.Options{Schema: otherNames.Schema, Prefix: otherNames.Prefix}
	check.Require(t, pgmigrate.Up(t.Context(), pool, o))
	mustExec(t, pool, `CREATE TABLE effects (key text NOT NULL)`)
	return url
}

func TestContractWithOtherNames(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	url := databaseWithOtherNames(t)
	run(t, url, url, otherNames, storetest.CallParts())
}

// TestOtherNames: every statement that is not a change of one record uses the names,
// also those about partitions.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	pool := connect(t, databaseWithOtherNames(t))
	s := newStore(t, pool, otherNames)
	tellStory(t, s, "story")
	if _, err := newStore(t, pool, postgres.Options{}).Capabilities(t.Context()); !errors.Is(err, postgres.ErrNoSchema) {
		t.Errorf("Capabilities with the default names = %v, want ErrNoSchema", err)
	}
	p := check.Must(postgres.NewPartitions(s, postgres.PartitionOptions{}))(t)
	p.SetAhead(-past)
	check.Require(t, p.Divide(t.Context()))
	p.SetAhead(0)
	check.Must(p.Ensure(t.Context()))(t)
	mustPurgeAndDrop(t, s, p)
	check.Equal(t, len(mustSalt(t, s)), 32, "the salt: bytes")
	check.Equal(t, one[string](t, pool, `SELECT string_agg(DISTINCT left(relname, 5), ' ') FROM pg_class WHERE relnamespace = 'app'::regnamespace`), "once_", "names in the schema begin with")
	if one[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_class WHERE relname LIKE 'semel%')`) {
		t.Error("there are relations with the default prefix")
	}
}

// mustPurgeAndDrop requires that Purge removes records of the first partition, and Drop
// removes partitions.
func mustPurgeAndDrop(t *testing.T, s *postgres.Store, p *postgres.Partitions) {
	t.Helper()
	mustForce(t, s, expired(create("untimed", store.Succeeded, 1)))
	mustForce(t, s, expired(at(3*24*time.Hour, "timed", store.Succeeded, 1)))
	counts, err := s.Counts(t.Context())
	check.Require(t, err)
	for _, c := range counts {
		if c.Operation == "test" && c.State == store.Succeeded && c.Purgeable != 1 {
			t.Errorf("Counts = %+v, want that Purge would remove one", c)
		}
	}
	check.Result(s.Purge(t.Context(), 10))(t, 1, "Purge (want one record)")
	dropped, err := p.Drop(t.Context())
	if err != nil || len(dropped) == 0 {
		t.Errorf("Drop = %v, %v, want some partitions", dropped, err)
	}
	for _, d := range dropped {
		if !strings.HasPrefix(d.Name, "once_records_p") {
			t.Errorf("the partition is %s, want once_records_p and a time", d.Name)
		}
	}
}

// The tables are found by the search_path of the pool's connections, in a schema of
// any name.
func TestTablesInAnotherSchema(t *testing.T) {
	t.Parallel()
	url := realtest.Postgres(t).Database(t)
	const schema = `"of ""ours"""`
	pool := connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = schema })
	s := newStore(t, pool, postgres.Options{})
	if _, err := s.Capabilities(t.Context()); !errors.Is(err, postgres.ErrNoSchema) {
		t.Errorf("Capabilities before the tables are there: %v, want ErrNoSchema", err)
	}
	check.ResultIs(finish(t, s, "key", &store.Change{}))(t, store.NotCommitted, postgres.ErrNoSchema, "Atomic before the tables are there")
	mustExec(t, pool, `CREATE SCHEMA `+schema)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	mustExec(t, pool, `CREATE TABLE effects (key text)`)
	if _, err := s.Capabilities(t.Context()); err != nil {
		t.Errorf("Capabilities: %v", err)
	}
	tellStory(t, s, "story")
	if there := one[bool](t, pool, `SELECT to_regclass('public.semel_records') IS NOT NULL`); there {
		t.Error("there are tables in public, so that the test shows nothing")
	}
	mustExec(t, pool, `DROP TABLE semel_records CASCADE`)
	if _, err := s.Scan(t.Context(), store.Query{}); !errors.Is(err, postgres.ErrNoSchema) {
		t.Errorf("Scan without the table: %v, want ErrNoSchema", err)
	}
	if _, err := s.Capabilities(t.Context()); !errors.Is(err, postgres.ErrNoSchema) {
		t.Errorf("Capabilities without a table: %v, want ErrNoSchema", err)
	}
}

func TestInvalidNames(t *testing.T) {
	t.Parallel()
	pool := connect(t, "postgres://localhost/none")
	for field, o := range map[string]postgres.Options{"Options.Schema": {Schema: "a.b"}, "Options.Prefix": {Prefix: "a b"}} {
		if _, err := postgres.New(pool, o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New with %+v = %v, want an error that names %s", o, err, field)
		}
	}
}
