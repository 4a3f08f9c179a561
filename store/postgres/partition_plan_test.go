package postgres_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// On a partitioned table, too, every statement finds its records by an index, also
// when it is empty; and what is of one key reads one partition.
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
	if _, err := s.Swap(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
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
	ofOne := []string{"get", "move", "move alone", "move last", "move, finish", "beat", "beat alone", "beat last"}
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
