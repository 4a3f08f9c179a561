//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/realtest"
)

// maxCrashes is how many workers a poisonous task may crash.
const maxCrashes = 3

// poison kills the process that runs it. Its lease is long enough that no attempt
// loses it on a busy machine.
var poison = semel.Define("poison", semel.OperationOptions[job]{
	Policy: semel.Atomic(), Lease: 5 * lease, Retry: &semel.Retry{MaxCrashes: maxCrashes},
})

// crash kills the process.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal arrives
}

func TestPoisonousTaskFailsAfterMaxCrashes(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, s := inPostgres(t)
		poisoned(t, at, s)
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("make test-full runs it")
		}
		at, s := inMariaDB(t)
		poisoned(t, at, s)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		at, s := inSQLite(t)
		poisoned(t, at, s)
	})
}

// poisoned runs a poisonous task and others with one worker after another.
func poisoned[Tx any](t *testing.T, at databaseAddress, s *database[Tx]) {
	t.Helper()
	const others = 40
	e := engineOf(t, s)
	enqueue(t, e, poison, "poison", 1)
	enqueue(t, e, inTx, "job", others)
	w := groundTruth{s.tables}
	victims := replaceKilled(t, at, w, others+1)
	w.wantLegalTransitions(t)
	w.want(t, others, "tasks with an effect", `select count(distinct task) from effects`)
	w.want(t, others, "effects", `select count(*) from effects`)
	w.want(t, 0, "effects of the poisonous task", `select count(*) from effects where task like 'poison-%'`)
	w.want(t, maxCrashes, "attempts of it that crashed",
		`select count(*) from history where task = 'poison-0' and from_state = 2 and to_owner <> from_owner`)
	// An attempt that cannot begin, because the database is busy, is released. It has not
	// crashed, but has a number.
	released := w.count(t, releases+` and task = 'poison-0'`)
	w.want(t, 1, "its failure, by an attempt that was not run",
		`select count(*) from history where task = 'poison-0' and to_state = 5 and to_attempt = $1`, maxCrashes+released+1)
	t.Logf("%d workers were killed, %d attempts of the poisonous task could not begin", victims, released)
	if victims < 1 || victims > maxCrashes {
		t.Errorf("it took %d workers with it, want 1 to %d", victims, maxCrashes)
	}
	_, _, err := semel.DoTx(t.Context(), e, poison.Call(semel.Shared(), "poison-0", newJob(0, 0)),
		func(context.Context, Tx) (string, error) { return "", errIntended })
	if failed, ok := errtype.Find[*semel.Failure](err); !ok || failed.Code != "exhausted" {
		t.Errorf("a call returns %v, want an error about exhausted attempts", err)
	}
}

// replaceKilled starts a worker for each that is killed, until so many tasks are
// done, and returns how many were killed.
func replaceKilled(t *testing.T, at databaseAddress, w groundTruth, tasks int64) (victims int) {
	t.Helper()
	p := start(t, worker(at, "worker-0", poison, inTx))
	realtest.Poll(t, "the end of all tasks", func() bool {
		select {
		case <-p.Ended():
			p.AwaitKilled(t)
			victims++
			p = start(t, worker(at, fmt.Sprint("worker-", victims), poison, inTx))
		default:
		}
		return w.count(t, `select count(*) from semel_records where state in (4, 5)`) >= tasks
	})
	endAll(t, []*process{p})
	return victims
}

// enqueue enqueues n jobs of an operation.
func enqueue[Tx any](t *testing.T, e *semel.Engine[Tx], op *semel.Operation[job], name string, n int) {
	t.Helper()
	for i := range n {
		call := op.Call(semel.Shared(), fmt.Sprintf("%s-%d", name, i), newJob(i, 0))
		check.Require(t, retryWhileBusy(t.Context(), func() error {
			_, err := semel.Enqueue(t.Context(), e, call, semel.EnqueueOptions{})
			return err
		}))
	}
}
