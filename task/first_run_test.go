package task_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// runBriefly runs p as a process that is stopped at once.
func runBriefly(t *testing.T, p *task.Periodic[input]) {
	t.Helper()
	stop := runPeriodic(t, p)
	sleep(0)
	stop()
}

func withLongCatchUp(o *task.PeriodicOptions[input]) { o.CatchUp = 20 * time.Hour }

// TestNewScheduleBeginsWithItsNextTick: this holds in all processes that start
// the schedule, and with a long CatchUp.
func TestNewScheduleBeginsWithItsNextTick(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		mem := memory.New(memory.Options{})
		sleep(10*time.Hour + 30*time.Minute)
		var p *task.Periodic[input]
		var r *rig
		for range 3 {
			r = newRig(t, mem, task.Options{}, op)
			p = periodic(r, op, withLongCatchUp)
			defer runPeriodic(t, p)()
		}
		sleep(10 * time.Minute)
		defer runPeriodic(t, periodic(newRig(t, mem, task.Options{}, op), op, withLongCatchUp))() // a process that is deployed later
		hour := time.Now().Truncate(time.Hour)
		sleep(time.Hour)
		for back := range 10 {
			if got := r.record(p.Call(hour.Add(-time.Duration(back) * time.Hour))); got.State != store.Absent {
				t.Errorf("the tick of %d hours before the first run is %v, want it skipped", back, got.State)
			}
		}
		r.wantState(p.Call(hour.Add(time.Hour)), store.Pending)
	})
}

// TestCatchUpGoesBackToTheFirstRun and no further, after a restart and also
// when the records of old ticks are purged.
func TestCatchUpGoesBackToTheFirstRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		p := periodic(r, op, withLongCatchUp)
		sleep(10*time.Hour + 30*time.Minute)
		begun := time.Now().Truncate(time.Hour)
		runBriefly(t, p)
		sleep(3 * time.Hour)
		runBriefly(t, p)
		for n, want := range []store.State{store.Absent, store.Pending, store.Pending, store.Pending, store.Absent} {
			check.Equal(t, r.record(p.Call(begun.Add(time.Duration(n)*time.Hour))).State, want, "the tick %d hours after the one before the first run", n)
		}
		sleep(50 * 24 * time.Hour)
		if _, err := admin.Purge(t.Context(), r, 1000); err != nil {
			t.Fatalf("Purge: %v", err)
		}
		now := time.Now().Truncate(time.Hour)
		runBriefly(t, p)
		r.wantState(p.Call(now.Add(-19*time.Hour)), store.Pending)
	})
}

// TestFirstRunWhileTheStoreIsDown: the first run is the time at which the
// process started, not the time at which the store came back.
func TestFirstRunWhileTheStoreIsDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		p := periodic(r, op, withLongCatchUp)
		sleep(30 * time.Minute)
		tick := time.Now().Truncate(time.Hour).Add(time.Hour)
		r.setDown(true)
		defer runPeriodic(t, p)()
		sleep(time.Hour)
		r.setDown(false)
		sleep(10 * time.Minute)
		r.wantState(p.Call(tick), store.Pending)
		if got := r.record(p.Call(tick.Add(-time.Hour))); got.State != store.Absent {
			t.Errorf("the tick before the first run is %v, want it skipped", got.State)
		}
	})
}
