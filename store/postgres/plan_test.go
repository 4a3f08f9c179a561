package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Every statement finds its records by an index: when the tables are empty and
// never analyzed, which is when a new service prepares its statements, and when
// they are filled and analyzed, or empty again; planned for its parameters, and for any.
func TestPlans(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), mode(pgx.QueryExecModeExec))
	mustExec(t, pool, `ALTER TABLE semel_records SET (autovacuum_enabled = off)`)
	s := newStore(t, pool, postgres.Options{})
	if n := one[float64](t, pool, `SELECT reltuples FROM pg_class WHERE relname = 'semel_records'`); n >= 0 {
		t.Fatalf("the empty table has statistics: %v tuples", n)
	}
	checkPlans(t, pool, s)
	mustExec(t, pool, `ANALYZE`)
	checkPlans(t, pool, s)
	for batch := range 3 {
		changes := make([]store.Change, 1000)
		for i := range changes {
			changes[i] = create(fmt.Sprint(batch, i), store.States()[i%5], 1)
			changes[i].To.Due, changes[i].To.Expire = -1, -1
		}
		if _, err := s.Swap(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	checkPlans(t, pool, s)
	mustExec(t, pool, `ANALYZE`)
	checkPlans(t, pool, s)
	mustExec(t, pool, `DELETE FROM semel_records`) // the statistics are of rows that are gone
	checkPlans(t, pool, s)
}

// indexes says by which index a statement goes, where it is not the primary key.
func indexes(name string) string {
	switch name {
	case "scan due waits", "scan due", "dequeue", "dequeue in a session":
		return "using semel_queue on semel_records"
	case "scan due leases":
		return "using semel_leases on semel_records"
	case "dequeue again":
		return "using semel_dequeued on semel_records"
	case "scan rare":
		return "using semel_rare on semel_records"
	case "purge":
		return "using semel_expires on semel_records"
	case "notes":
		return "semel_notes_id"
	case "create", "create in a session", "create lone", "create alone", "create last", "create many",
		"create alike", "create alike, told", "create alike, queued", "create alike, queued, told":
		return ""
	default:
		return "semel_records_pkey"
	}
}

// dueOnly says that an index is read for what is due, and for nothing else.
var dueOnly = regexp.MustCompile(`Index Cond: .*due <= statement_timestamp\(\)`)

func checkPlans(t *testing.T, pool *pgxpool.Pool, s *postgres.Store) {
	t.Helper()
	for _, q := range postgres.Queries(s) {
		for _, plan := range []string{explain(t, pool, q), explainGeneric(t, pool, q)} {
			// A report on what waits is sorted.
			sorted := strings.Contains(plan, "Sort  (") && q.Name != "scan due waits" && q.Name != "scan due"
			joined := strings.Contains(plan, "Hash") || strings.Contains(plan, "Merge Join")
			if strings.Contains(plan, "Seq Scan") || sorted || joined || !strings.Contains(plan, indexes(q.Name)) {
				t.Errorf("%s is done by\n%s", q.Name, plan)
			}
			if strings.Contains(q.Name, "due") && !dueOnly.MatchString(plan) || strings.Contains(plan, "JIT") {
				t.Errorf("%s reads what is not due:\n%s", q.Name, plan)
			}
		}
	}
}

// explain tells the plan for the statement's own parameters.
func explain(t *testing.T, pool *pgxpool.Pool, q postgres.Query) string {
	t.Helper()
	args := append([]any{pgx.QueryExecModeExec}, q.Args...)
	return within(t, pool, q.Before, func(ctx context.Context, tx pgx.Tx) (pgx.Rows, error) {
		return tx.Query(ctx, `EXPLAIN `+q.Text, args...)
	})
}

// explainGeneric tells the plan that is kept for any parameters.
func explainGeneric(t *testing.T, pool *pgxpool.Pool, q postgres.Query) string {
	t.Helper()
	return within(t, pool, q.Before, func(ctx context.Context, tx pgx.Tx) (pgx.Rows, error) {
		mustExec(t, tx, `SET LOCAL plan_cache_mode = force_generic_plan`)
		mustExec(t, tx, `DEALLOCATE ALL`)
		mustExec(t, tx, `PREPARE generic AS `+q.Text)
		nulls := strings.Repeat(", NULL", len(q.Args))
		return tx.Query(ctx, `EXPLAIN EXECUTE generic (`+strings.TrimPrefix(nulls, ", ")+`)`)
	})
}

func within(t *testing.T, pool *pgxpool.Pool, before string, ask func(context.Context, pgx.Tx) (pgx.Rows, error)) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	mustExec(t, tx, before)
	rows, err := ask(t.Context(), tx)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
