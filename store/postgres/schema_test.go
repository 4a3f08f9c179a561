package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A handler that sets a search_path, its tenant's, does not choose where its
// record goes: whether there are tables of the same name, or none.
func TestHandlerSetsTheSearchPath(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	mustExec(t, pool, `CREATE SCHEMA tenant`)
	mustExec(t, pool, `CREATE TABLE tenant.semel_records (LIKE public.semel_records INCLUDING ALL)`)
	mustExec(t, pool, `CREATE SCHEMA other`)
	for _, schema := range []string{"tenant", "other"} {
		mustExec(t, pool, `CREATE TABLE `+schema+`.effects (key text)`)
		claimed := create(schema+" claimed", store.InProgress, 1)
		mustForce(t, s, claimed)
		beaten, finished := move(claimed, store.InProgress), move(claimed, store.Succeeded)
		made, queued := create(schema+" made", store.Succeeded, 1), create(schema+" queued", store.Pending, 1)
		kept := create(schema+" kept", store.Failed, 1)
		for _, row := range []struct {
			last *store.Change
			fail error
		}{{&made, nil}, {&beaten, nil}, {&finished, nil}, {&kept, errHandler}} {
			verdict, err := s.Atomic(t.Context(), row.last.To.ID, true,
				func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
					err := do(ctx, tx, `SET LOCAL search_path TO `+schema)
					answers, swapped := s.SwapTx(ctx, tx, []store.Change{queued})
					if swapped == nil && answers[0].Token != queued.To.Token {
						t.Errorf("SwapTx = %+v, want %+v to stand", answers[0], queued.To.Token)
					}
					if err = errors.Join(err, swapped, effect(ctx, tx, "key")); err != nil {
						t.Error(err)
					}
					return row.last, row.fail
				})
			if verdict != store.Committed || err != nil || current(t, s, *row.last) != row.last.To.Token {
				t.Errorf("%s: Atomic = %v, %v, and the current record is %+v, want %+v", schema, verdict, err, current(t, s, *row.last), row.last.To.Token)
			}
		}
		if n := one[int](t, pool, `SELECT count(*) FROM `+schema+`.effects`); n != 3 || current(t, s, queued) != queued.To.Token {
			t.Errorf("%s: %d effects and %+v, want 3 and what was queued", schema, n, current(t, s, queued))
		}
	}
	check.Equal(t, one[int](t, pool, `SELECT count(*) FROM tenant.semel_records`), 0, "records went to the tenant's table")
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

// A handler that takes a role must take one that may write the records.
func TestHandlerSetsTheRole(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `SET LOCAL ROLE pg_monitor`))
		})
	if verdict != store.NotCommitted || postgres.CodeOf(err) != "42501" {
		t.Errorf("Atomic = %v, %v, want NotCommitted and that the role may not", verdict, err)
	}
	check.Equal(t, effects(t, pool, "key"), 0, "effects")
	mustBeFree(t, s, last)
}
