package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// batchSizes are below and above the size from which a batch is sent as arrays.
func batchSizes() []int { return []int{1, 2, 4, 5, 8, 40} }

// batch is a batch of creates of n records.
func batch(name string, n int) []store.Change {
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = create(fmt.Sprint(name, i), store.InProgress, 1)
	}
	return changes
}

// A record that another open transaction holds makes no other record Busy.
func TestBusyAlone(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	for _, n := range batchSizes() {
		changes := batch(fmt.Sprint("batch ", n), n)
		held := n / 2
		holder := check.Must(pool.Begin(t.Context()))(t)
		check.Must(s.SwapTx(t.Context(), holder, changes[held:held+1]))(t)
		answers := check.Must(s.Swap(t.Context(), changes))(t)
		for i, answer := range answers {
			if answer.Busy != (i == held) || !answer.Busy && !answer.Applied(changes[i]) {
				t.Errorf("of %d changes, the one of number %d is held, and number %d answers %+v", n, held, i, answer)
			}
		}
		check.Require(t, holder.Rollback(t.Context()))
		for i, answer := range mustSwap(t, s, changes) {
			if !answer.Applied(changes[i]) {
				t.Errorf("asked again, number %d answers %+v", i, answer)
			}
		}
	}
}

// trips counts the batches that go to the server.
type trips struct{ n atomic.Int64 }

func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (*trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (*trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A Swap with many held records makes a bounded number of round trips: it does not wait for
// each of them.
func TestManyHeldRecords(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool, sent := connect(t, url), new(trips)
	s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.Tracer = sent }), postgres.Options{})
	for _, row := range []struct{ held, of, trips int }{{1000, 1000, 140}, {40, 400, 450}} {
		changes := batch(fmt.Sprint("batch ", row.held), row.of)
		holder := check.Must(pool.Begin(t.Context()))(t)
		check.Must(s.SwapTx(t.Context(), holder, changes[:row.held]))(t)
		before := sent.n.Load()
		for i, answer := range mustSwap(t, s, changes) {
			if answer.Busy != (i < row.held) || !answer.Busy && !answer.Applied(changes[i]) {
				t.Errorf("%d of %d changes are held, and number %d answers %+v", row.held, row.of, i, answer)
			}
		}
		if n := int(sent.n.Load() - before); n > row.trips {
			t.Errorf("of %d changes %d are held, and %d trips are made, want at most %d", row.of, row.held, n, row.trips)
		}
		check.Require(t, holder.Rollback(t.Context()))
	}
}

// TestLongestWait holds what the comment at busyAfter says.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	if postgres.LongestWait > 500*time.Millisecond {
		t.Errorf("a Swap waits for up to %v, want half a second at most", postgres.LongestWait)
	}
}

func mustSwap(t *testing.T, s *postgres.Store, changes []store.Change) []store.SwapResult {
	t.Helper()
	answers, err := s.Swap(t.Context(), changes)
	check.Require(t, err, "Swap")
	return answers
}

// A record that the database does not take is refused alone, also within a
// transaction, which goes on.
func TestRefusedAlone(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	mustExec(t, pool, `ALTER TABLE semel_records ADD CHECK (key <> 'poison')`)
	for _, n := range batchSizes() {
		for _, inTx := range []bool{false, true} {
			mustExec(t, pool, `TRUNCATE semel_records`)
			changes := batch("key", n)
			changes[n/2].To.Key = "poison"
			tx, err := pool.Begin(t.Context())
			check.Require(t, err)
			var answers []store.SwapResult
			if inTx {
				answers, err = s.SwapTx(t.Context(), tx, changes)
			} else {
				answers, err = s.Swap(t.Context(), changes)
			}
			if err = errors.Join(err, tx.Commit(t.Context())); err != nil {
				t.Fatal(err)
			}
			for i, answer := range answers {
				if refused := answer.Err != nil; refused != (i == n/2) || !refused && current(t, s, changes[i]) != changes[i].To.Token {
					t.Errorf("of %d changes, in a transaction %v, one is poisoned, and number %d answers %+v", n, inTx, i, answer)
				}
			}
		}
	}
}

// A batch that is too large for one round trip is sent in several.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, database(t)), postgres.Options{})
	changes := batch("large", 40)
	for i := range changes {
		changes[i].To.Outcome = []byte(strings.Repeat("x", 1<<20-i))
	}
	for i, answer := range mustSwap(t, s, changes) {
		if !answer.Applied(changes[i]) {
			t.Errorf("number %d answers %v, %v", i, answer.Token, answer.Err)
		}
	}
	answers, err := s.Get(t.Context(), []store.ID{changes[0].To.ID, changes[39].To.ID})
	if err != nil || len(answers[0].Record.Outcome) != 1<<20 || len(answers[1].Record.Outcome) != 1<<20-39 {
		t.Errorf("Get = %v, want the outcomes whole", err)
	}
}

func TestPortions(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, row := range []struct{ sizes, want []int }{
		{nil, nil},
		{[]int{0}, []int{1}},
		{[]int{16 * mib, 0, 0}, []int{3}},
		{[]int{16 * mib, 1, 0}, []int{1, 2}},
		{[]int{17 * mib, 17 * mib}, []int{1, 1}},
		{[]int{8 * mib, 8 * mib, 8 * mib, 9 * mib}, []int{2, 1, 1}},
	} {
		if got := postgres.Portions(row.sizes); !slices.Equal(got, row.want) {
			t.Errorf("changes of %v bytes go in trips of %v, want %v", row.sizes, got, row.want)
		}
	}
}

// SwapTx leaves the transaction's settings as they were, also when it was Busy,
// and the transaction goes on.
func TestSwapTxLeavesTheSettings(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	for _, n := range []int{2, 17} {
		mine, theirs := batch(fmt.Sprint("mine ", n), n), batch(fmt.Sprint("theirs ", n), n)
		holder := check.Must(pool.Begin(t.Context()))(t)
		check.Must(s.SwapTx(t.Context(), holder, theirs))(t)
		tx := check.Must(pool.Begin(t.Context()))(t)
		mustExec(t, tx, `SET LOCAL lock_timeout = '123ms'; SET LOCAL enable_sort = off`, pgx.QueryExecModeSimpleProtocol)
		before := settings(t, tx)
		for _, changes := range [][]store.Change{mine, mine[:1], theirs[:1], {mine[0], theirs[0]}} {
			if _, err := s.SwapTx(t.Context(), tx, changes); err != nil {
				t.Fatalf("SwapTx: %v", err)
			}
			if after := settings(t, tx); after != before {
				t.Errorf("after SwapTx of %d changes the settings are\n%s\nwant\n%s", len(changes), after, before)
			}
		}
		check.Require(t, errors.Join(tx.Commit(t.Context()), holder.Rollback(t.Context())))
		for i, c := range mine {
			if current(t, s, c) != c.To.Token {
				t.Errorf("of %d changes number %d does not stand", n, i)
			}
		}
	}
}

// settings are those that SwapTx changes for itself.
func settings(t *testing.T, tx pgx.Tx) string {
	t.Helper()
	var all string
	const read = `SELECT string_agg(name || '=' || current_setting(name), ' ') FROM unnest(ARRAY['lock_timeout', 'jit',
'enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin']) name`
	check.Require(t, tx.QueryRow(t.Context(), read).Scan(&all))
	return all
}
