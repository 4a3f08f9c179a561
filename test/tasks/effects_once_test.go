//go:build unix

package tasks_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel/event"
)

func TestTasksRunOnceWhileWorkersAreKilledAndStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	at, s := inPostgres(t)
	o := stressTest{
		op: inTx, jobs: rounds(10_000), workers: 4, callers: 4,
		killAndStop: time.Duration(rounds(30)) * time.Second, kill: time.Second, stops: true,
	}
	r := run(t, at, s, o)
	r.logCounts(t)
	r.check(t, o)
	r.checkOnce(t)
	undone := r.count(t, `select last_value from effects_n_seq`) - r.count(t, `select count(*) from effects`)
	t.Logf("%d effects were written and undone", undone)
	wantSome(t, "an effect that was undone", undone)
	wantSome(t, "a stop", r.processKiller.stops)
	wantSome(t, "a takeover", r.count(t, takeovers))
	wantSome(t, "a fenced zombie", r.mark(t, string(event.Fenced)))
	wantSome(t, "an answer to a direct caller", r.count(t, `select count(*) from told`))
}

func TestTasksRunOnceOnSQLiteWhileWorkersAreKilled(t *testing.T) {
	t.Parallel()
	at, s := inSQLite(t)
	o := stressTest{
		op: inTx, jobs: rounds(200), workers: 2, callers: 1,
		slots:       3, // their writes are serial anyway, and they lose leases while they wait
		killAndStop: time.Duration(rounds(4)) * time.Second, kill: 600 * time.Millisecond,
	}
	r := run(t, at, s, o)
	r.logCounts(t)
	r.check(t, o)
	r.checkOnce(t)
}

func TestTasksRunOnceOnMariaDBWhileWorkersAreKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	at, s := inMariaDB(t)
	o := stressTest{
		op: inTx, jobs: rounds(600), workers: 3, callers: 2,
		killAndStop: time.Duration(rounds(5)) * time.Second, kill: 800 * time.Millisecond, stops: true,
	}
	r := run(t, at, s, o)
	r.logCounts(t)
	r.check(t, o)
	r.checkOnce(t)
	wantSome(t, "a takeover", r.count(t, takeovers))
}

func TestOutsideEffectsHappenOncePerAttempt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	at, s := inPostgres(t)
	o := stressTest{
		op: outside, jobs: rounds(250), workers: 3,
		killAndStop: time.Duration(rounds(4)) * time.Second, kill: 500 * time.Millisecond, stops: true,
	}
	r := run(t, at, s, o)
	r.logCounts(t)
	r.check(t, o)
	enqueueAgain := r.count(t, `select count(*) from effects`) - int64(o.jobs)
	t.Logf("%d effects happened again", enqueueAgain)
	wantSome(t, "an effect that happened again", enqueueAgain)
}
