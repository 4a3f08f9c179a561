//go:build unix

package tasks_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
)

func TestTasksHaveTheirEffectOnceWhateverIsKilledAndStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	at, s := inPostgres(t)
	o := torture{
		op: inTx, jobs: rounds(10_000), workers: 4, callers: 4,
		rage: time.Duration(rounds(30)) * time.Second, kill: time.Second, stops: true,
	}
	r := run(t, at, s, o)
	r.tell(t)
	r.check(t, o)
	r.checkOnce(t)
	undone := r.count(t, `select last_value from effects_n_seq`) - r.count(t, `select count(*) from effects`)
	t.Logf("%d effects were written and undone", undone)
	seen(t, "an effect that was undone", undone)
	seen(t, "a stop", r.nemesis.stops)
	seen(t, "a takeover", r.count(t, takeovers))
	seen(t, "a fenced zombie", r.mark(t, string(semel.EventFenced)))
	seen(t, "an answer to a direct caller", r.count(t, `select count(*) from told`))
}

func TestTasksHaveTheirEffectOnceOnSQLiteWhateverIsKilled(t *testing.T) {
	t.Parallel()
	at, s := inSQLite(t)
	o := torture{
		op: inTx, jobs: rounds(300), workers: 2, callers: 1,
		slots: 3, // they take turns at writing anyway, and lose their leases while they wait
		rage:  time.Duration(rounds(6)) * time.Second, kill: 600 * time.Millisecond,
	}
	r := run(t, at, s, o)
	r.tell(t)
	r.check(t, o)
	r.checkOnce(t)
}

func TestEffectsElsewhereHappenAtLeastOnceAndOnceAnAttempt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	at, s := inPostgres(t)
	o := torture{
		op: outside, jobs: rounds(400), workers: 3,
		rage: time.Duration(rounds(6)) * time.Second, kill: 500 * time.Millisecond, stops: true,
	}
	r := run(t, at, s, o)
	r.tell(t)
	r.check(t, o)
	again := r.count(t, `select count(*) from effects`) - int64(o.jobs)
	t.Logf("%d effects happened again", again)
	seen(t, "an effect that happened again", again)
}
