//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// shortLease is the lease of leaders that take about as long as their lease.
const shortLease = 100 * time.Millisecond

var (
	shortLeaseTx = semel.Define("hurried_tx", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: shortLease, Retry: patient()})
	shortLeaseOp = semel.Define("hurried", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: shortLease, Retry: patient()})
)

// patient is a Retry that these tests never exhaust.
func patient() *semel.Retry {
	return &semel.Retry{
		MaxErrors: 10_000, MaxCrashes: 10_000,
		Delay: func(int) time.Duration { return rand.N(50 * time.Millisecond) },
	}
}

func TestConcurrentSweepersRequeueOnce(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, s := inPostgres(t)
		sweepersBesideLeaders(t, at, s, rounds(60))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("make test-full runs it")
		}
		at, s := inMariaDB(t)
		sweepersBesideLeaders(t, at, s, rounds(40))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		at, s := inSQLite(t)
		sweepersBesideLeaders(t, at, s, rounds(40))
	})
}

// sweepersBesideLeaders lets four processes sweep without a pause, beside two
// leaders. Their attempts end at about the time when their leases expire. It gives them n tasks
// of each kind at a time, until each kind of race has had each of its outcomes.
func sweepersBesideLeaders[Tx any](t *testing.T, at databaseAddress, s *database[Tx], n int) {
	t.Helper()
	e := engineOf(t, s)
	var all []*process
	for i := range 4 {
		all = append(all, start(t, child{
			Role: "sweeper", Name: fmt.Sprint("sweeper-", i), Place: at, Operations: []string{shortLeaseTx.Name(), shortLeaseOp.Name()},
		}))
	}
	for i := range 2 {
		all = append(all, start(t, child{Role: "hurried", Name: fmt.Sprint("leader-", i), Place: at}))
	}
	w := groundTruth{s.tables}
	late := func() int64 {
		return w.count(t, `select count(*) from history where from_state = 2 and to_state = 4 and not early`)
	}
	fenced := func() int64 { return w.mark(t, string(event.Fenced)) }
	tasks := 0
	untilSeen(t, map[string]func() int64{
		"a requeue":                              func() int64 { return w.count(t, requeues) },
		"an end between its lease and the sweep": late,
		"a fenced zombie":                        fenced,
		"a requeue by a second process": func() int64 {
			return w.count(t, `select count(distinct process) from marks where kind = $1`, string(event.Swept)) - 1
		},
	}, func(round int) {
		enqueueShortLease(t, e, round*n, n)
		tasks += 2 * n
		w.await(t, int64(tasks), "tasks that are done", `select count(*) from semel_records where state = 4`)
	})
	endAll(t, all)
	w.wantLegalTransitions(t)
	w.none(t, "tasks with another number of effects than one", `select task from effects
		where task like 'hurried_tx-%' group by task having count(*) <> 1`)
	w.none(t, "attempts with more than one effect", `select task from effects group by task, attempt having count(*) > 1`)
	w.want(t, int64(tasks), "tasks that had an effect", `select count(distinct task) from effects`)

	swept := w.count(t, requeues)
	t.Logf("%d tasks, %d requeued by sweepers, %d leaders ended after their lease, %d found that they had lost it",
		tasks, swept, late(), fenced())
	if said := w.mark(t, string(event.Swept)); said != swept {
		t.Errorf("the sweepers have requeued %d attempts, and the records say %d", said, swept)
	}
}

// enqueueShortLease enqueues n tasks of each kind, with the numbers from first on.
func enqueueShortLease[Tx any](t *testing.T, e *semel.Engine[Tx], first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		for _, op := range []*semel.Operation[string]{shortLeaseOp, shortLeaseTx} {
			key := fmt.Sprintf("%s-%d", op.Name(), i)
			check.Require(t, retryWhileBusy(t.Context(), func() error {
				_, err := semel.Enqueue(t.Context(), e, op.Call(semel.Shared(), key, key), semel.EnqueueOptions{})
				return err
			}))
		}
	}
}

// engineOf is the test's own engine over the site.
func engineOf[Tx any](t *testing.T, s *database[Tx]) *semel.Engine[Tx] {
	t.Helper()
	e := check.Must(semel.New(s.store, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute}))(t)
	closeEngine(t, e)
	return e
}

// closeEngine closes an engine at the end of the test.
func closeEngine(t *testing.T, e semel.Runner) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), ceiling)
		defer cancel()
		check.NoError(t, e.Close(ctx), "close the engine")
	})
}

func runSweeper[Tx any](ctx context.Context, c child, s *database[Tx], m *counters) error {
	e, err := semel.New(s.store, semel.Options{Survive: store.NoFailure, Operations: c.operations(), Observer: m})
	if err != nil {
		return err
	}
	sweeper, err := admin.NewSweeper(e, admin.SweeperOptions{Every: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	return sweeper.Run(ctx)
}
