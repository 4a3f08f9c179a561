package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
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
		check.Must(s.Swap(t.Context(), changes))(t)
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
	case "scan pending", "scan in progress": // by the keys, or by an index of the state
		return "Index Scan using semel_"
	case "dequeue again":
		return "using semel_dequeued on semel_records"
	case "scan rare":
		return "using semel_rare on semel_records"
	case "purge":
		return "using semel_expires on semel_records"
	case "notes":
		return "semel_notes_id"
	case "create", "create in a session", "create alone", "create last", "create many", "create many in a session":
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
			few := q.Name == "scan pending" || q.Name == "scan in progress"
			most := 0 // sorts
			if strings.HasPrefix(q.Name, "dequeue") || q.Name == "notes" {
				most = 1 // what it has found
			}
			sorted := strings.Count(plan, "Sort  (") > most && q.Name != "scan due waits" && q.Name != "scan due" && !few
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
	tx := check.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	mustExec(t, tx, before)
	rows := check.Must(ask(t.Context(), tx))(t)
	lines := check.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	return strings.Join(lines, "\n")
}

// On a partitioned table, too, every statement finds its records by an index, also if the
// table is empty, and a statement for one key reads one partition.
func TestPlansPartitioned(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), mode(pgx.QueryExecModeExec))
	divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	checkPartitionPlans(t, pool, s)
	changes := make([]store.Change, 1000)
	for i := range changes {
		changes[i] = at(0, strings.Repeat("k", i%200)+string(rune('a'+i/200)), store.States()[i%5], 1)
		changes[i].To.Due, changes[i].To.Expire = -1, -1
	}
	check.Must(s.Swap(t.Context(), changes))(t)
	mustExec(t, pool, `ANALYZE`)
	checkPartitionPlans(t, pool, s)
}

// partition finds which partitions a plan reads, and by what.
var partition = regexp.MustCompile(`(\w+ Scan|Scan using \w+) on semel_records_(\w+)`)

// readsAll tells whether a plan goes through the whole of an index on keys.
func readsAll(plan string) bool {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		if strings.Contains(line, "Scan using semel_records") && strings.Contains(line, "_pkey") &&
			(i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond")) {
			return true
		}
	}
	return false
}

func checkPartitionPlans(t *testing.T, pool *pgxpool.Pool, s *postgres.Store) {
	t.Helper()
	ofOne := []string{"get", "move", "move alone", "move last", "beat", "beat alone", "beat last"}
	for _, q := range postgres.Queries(s) {
		own, generic := explain(t, pool, q), explainGeneric(t, pool, q)
		for _, plan := range []string{own, generic} {
			if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Hash") || strings.Contains(plan, "Merge Join") || readsAll(plan) {
				t.Errorf("%s is done by\n%s", q.Name, plan)
			}
			if strings.Contains(q.Name, "due") && !dueOnly.MatchString(plan) || strings.Contains(plan, "JIT") {
				t.Errorf("%s reads what is not due:\n%s", q.Name, plan)
			}
		}
		var read []string
		for _, found := range partition.FindAllStringSubmatch(own, -1) {
			read = append(read, found[2])
		}
		slices.Sort(read)
		if slices.Contains(ofOne, q.Name) && len(slices.Compact(read)) != 1 {
			t.Errorf("%s reads %v:\n%s", q.Name, read, own)
		}
		if slices.Contains(ofOne, q.Name) && !strings.Contains(generic, "Subplans Removed") && !strings.Contains(generic, "Update on semel_records") {
			t.Errorf("%s is planned to read all partitions:\n%s", q.Name, generic)
		}
	}
}
