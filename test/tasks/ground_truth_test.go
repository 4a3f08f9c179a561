//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/internal/realtest"
)

// groundTruth reads the effects and transitions from the tables, independently of the
// reports of processes.
type groundTruth struct{ db tables }

// count is what a query counts.
func (w groundTruth) count(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), ceiling)
	defer cancel()
	check.Require(t, retryWhileBusy(ctx, func() error { return w.db.QueryRowContext(ctx, query, args...).Scan(&n) }), "%s", query)
	return n
}

// want requires that a query counts so many.
func (w groundTruth) want(t *testing.T, n int64, what, query string, args ...any) {
	t.Helper()
	check.Equal(t, w.count(t, query, args...), n, "%s", what)
}

// none requires that a query of keys finds nothing, and names some that it finds.
func (w groundTruth) none(t *testing.T, what, query string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), ceiling)
	defer cancel()
	rows, err := w.db.QueryContext(ctx, query, args...)
	check.Require(t, err, "%s", query)
	defer rows.Close()
	var keys []string
	for rows.Next() {
		var key string
		check.Require(t, rows.Scan(&key), "%s", query)
		keys = append(keys, key)
	}
	check.Require(t, rows.Err(), "%s", query)
	if len(keys) == 0 {
		return
	}
	t.Errorf("%s: %d, such as %s", what, len(keys), keys[0])
	for _, line := range w.historyOf(t, keys[0]) {
		t.Log(line)
	}
}

// historyOf returns everything that the tables have about a key.
func (w groundTruth) historyOf(t *testing.T, key string) (lines []string) {
	t.Helper()
	rows, err := w.db.QueryContext(context.WithoutCancel(t.Context()), `
		select 'record ' || from_state || '/' || from_attempt || '/' || from_owner || ' -> ' || to_state || '/' || to_attempt || '/' || to_owner || ' early ' || early from
			(select * from history where task = $1 order by n) as h
		union all select 'effect of attempt ' || attempt || ' owner ' || owner || ' by ' || process from effects where task = $2
		union all select 'told ' || result from told where task = $3`, key, key, key)
	if err != nil {
		return []string{err.Error()}
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return append(lines, err.Error())
		}
		lines = append(lines, line)
	}
	return lines
}

// mark is how often the processes have seen something.
func (w groundTruth) mark(t *testing.T, kind string) int64 {
	t.Helper()
	return w.count(t, `select coalesce(sum(times), 0) from (select distinct id, times from marks where kind = $1) as m`, kind)
}

// awaitLoss waits until a process has found at the end of an attempt that another attempt
// has its job.
func (w groundTruth) awaitLoss(t *testing.T) {
	t.Helper()
	realtest.Poll(t, "a fenced zombie", func() bool { return w.mark(t, string(event.Fenced)) > 0 })
}

// untilSeen runs one round of work after another, with the numbers from 0 on, until the
// processes have seen each of the events. Chance decides in which round an event happens.
func untilSeen(t *testing.T, events map[string]func() int64, round func(i int)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ceiling)
	defer cancel()
	for i := 0; len(events) > 0; i++ {
		check.Require(t, ctx.Err(), "%d rounds without one of the events %q", i, slices.Collect(maps.Keys(events)))
		round(i)
		maps.DeleteFunc(events, func(_ string, count func() int64) bool { return count() > 0 })
	}
}

// wantSome requires that an event has happened, which the test brings about; otherwise the
// test shows nothing.
func wantSome(t *testing.T, what string, n int64) {
	t.Helper()
	if n == 0 {
		t.Errorf("vacuous: %s did not happen", what)
	}
}

// await waits until a query counts so many, or more.
func (w groundTruth) await(t *testing.T, n int64, what, query string, args ...any) {
	t.Helper()
	realtest.Poll(t, fmt.Sprintf("%d %s", n, what), func() bool { return w.count(t, query, args...) >= n })
}

// awaitEffect waits until a task has had an effect.
func (w groundTruth) awaitEffect(t *testing.T, task string) {
	t.Helper()
	w.await(t, 1, "effects of "+task, `select count(*) from effects where task = $1`, task)
}

// wantLegalTransitions requires that the protocol has each transition of the records.
func (w groundTruth) wantLegalTransitions(t *testing.T) {
	t.Helper()
	var rows []string
	for _, row := range protocol.Transitions() {
		rows = append(rows, fmt.Sprintf("(%d, %d)", row.From, row.To))
	}
	w.none(t, "transitions that the protocol does not allow", `select task from history
		where (from_state, to_state) not in (values `+strings.Join(rows, ", ")+`)`)
	w.none(t, "final records that changed", `select task from history where from_state in (4, 5)`)
	w.none(t, "records with a lower attempt number than before", `select task from history where to_attempt < from_attempt`)
	w.none(t, "attempts that were claimed twice",
		`select task from history where to_state = 2 group by operation, task, to_attempt having count(*) > 1`)
	w.none(t, "attempts that were ended twice",
		`select task from history where from_state = 2 group by operation, task, from_attempt having count(*) > 1`)
	w.none(t, "attempts that another owner ended within their lease",
		`select task from history where from_state = 2 and to_owner <> from_owner and early`)
	w.none(t, "calls that were claimed before they were due",
		`select task from history where from_state = 1 and to_state = 2 and early`)
	w.none(t, "claims whose attempt number is not the next one",
		`select task from history where to_state = 2 and to_attempt <> from_attempt + 1`)
}

// Queries that count the rare events in the history.
const (
	requeues  = `select count(*) from history where from_state = 2 and to_state = 1 and to_owner <> from_owner`
	takeovers = `select count(*) from history where from_state = 2 and to_state = 2`
	releases  = `select count(*) from history where from_state = 2 and to_state = 1 and to_owner = from_owner`
)
