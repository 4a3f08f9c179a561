package task_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may lack time zone data

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// tickInput is the input of the periodic tasks of the tests.
func tickInput(tick time.Time) input { return input{int(tick.Unix())} }

// periodic returns the hourly schedule of one process.
func periodic(r *rig, op *semel.Operation[input], change ...func(*task.PeriodicOptions[input])) *task.Periodic[input] {
	r.t.Helper()
	o := task.PeriodicOptions[input]{
		Name: "hourly", Schedule: task.Every(time.Hour), Operation: op, Scope: semel.Shared(), Input: tickInput,
	}
	for _, c := range change {
		c(&o)
	}
	p, err := task.NewPeriodic(r.Engine, o)
	if err != nil {
		r.t.Fatalf("NewPeriodic: %v", err)
	}
	return p
}

// runPeriodic runs p. The returned function stops it and waits for it.
func runPeriodic(t *testing.T, p *task.Periodic[input]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return func() {
		cancel()
		check.NoError(t, <-ended, "Run")
	}
}

// TestTickIsOneTask, however many processes enqueue the tick, and however
// often.
func TestTickIsOneTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := semel.Define("op", atomicOptions())
		var ran syncList[int]
		for range 3 {
			r := newRig(t, mem, task.Options{Poll: time.Minute, NoSweeper: true}, op)
			handleTx(r, op, func(_ context.Context, _ *memory.Tx, in input) (int, error) {
				ran.add(in.N)
				return 0, nil
			})
			defer r.start()()
			defer runPeriodic(t, periodic(r, op))()
		}
		begun := time.Now()
		sleep(24*time.Hour + 2*time.Minute) // a worker polls at most one and a half minutes after the last tick
		times := make(map[int]int)
		for _, n := range ran.all() {
			times[n]++
		}
		if len(times) != 24 || len(ran.all()) != 24 {
			t.Errorf("ran %d tasks of %d ticks, want 24 of 24", len(ran.all()), len(times))
		}
		for n := range times {
			if tick := time.Unix(int64(n), 0); tick.Minute() != 0 || tick.Before(begun) {
				t.Errorf("the tick %v ran, want whole hours from %v", tick, begun)
			}
		}
	})
}

// TestMissedTicks: a process that is not the first to run the schedule enqueues
// ticks that were missed, unless they are older than CatchUp. Ticks that were
// enqueued before are not enqueued again.
func TestMissedTicks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		p := periodic(r, op, func(o *task.PeriodicOptions[input]) { o.CatchUp = 3 * time.Hour })
		runBriefly(t, p)
		sleep(10*time.Hour + 30*time.Minute)
		hour := func(back int) time.Time { return time.Now().Truncate(time.Hour).Add(-time.Duration(back) * time.Hour) }
		if added, err := p.Tick(t.Context(), hour(1)); !added || err != nil {
			t.Errorf("Tick = %v, %v, want it added", added, err)
		}
		stop := runPeriodic(t, p)
		sleep(0)
		stop()
		for back, want := range []store.State{store.Pending, store.Pending, store.Pending, store.Absent, store.Absent} {
			check.Equal(t, r.record(p.Call(hour(back))).State, want, "the tick of %d hours ago", back)
		}
	})
}

// TestTickIsLateWhileTheStoreIsDown, and is skipped when the outage is longer
// than CatchUp.
func TestTickIsLateWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		down time.Duration
		want store.State
	}{
		"for a while": {20 * time.Minute, store.Pending},
		"for long":    {40 * time.Minute, store.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := semel.Define("op", atomicOptions())
				r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
				p := periodic(r, op, func(o *task.PeriodicOptions[input]) { o.CatchUp = 30 * time.Minute })
				sleep(90 * time.Minute)
				defer runPeriodic(t, p)()
				r.setDown(true)
				tick := time.Now().Add(30 * time.Minute)
				sleep(30*time.Minute + tt.down)
				r.setDown(false)
				sleep(29 * time.Minute)
				check.Equal(t, tt.want, r.record(p.Call(tick)).State, "the tick is %v, want", r.record(p.Call(tick)).State)
				sleep(15 * time.Minute)
				if got := r.record(p.Call(tick.Add(time.Hour))); got.State != store.Pending {
					t.Errorf("the next tick is %v, want it enqueued", got.State)
				}
			})
		})
	}
}

// TestEarlyTickWaitsForItsTime: a process whose clock is ahead enqueues a tick
// early. The task is due at the tick's time by the store's clock.
func TestEarlyTickWaitsForItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		p := periodic(r, op)
		tick := time.Now().Add(20 * time.Minute)
		if _, err := p.Tick(t.Context(), tick); err != nil {
			t.Errorf("Tick: %v", err)
		}
		if got := r.wantState(p.Call(tick), store.Pending); got.Due != 20*time.Minute {
			t.Errorf("due in %v, want 20 minutes", got.Due)
		}
	})
}

// TestTickIsTheSameInEveryTimeZone: the time zone of a tick does not change its
// key.
func TestTickIsTheSameInEveryTimeZone(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", atomicOptions())
	r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
	p := periodic(r, op)
	tick := time.Now()
	if here, there := p.Call(tick.UTC()), p.Call(tick.In(time.FixedZone("there", 3600))); here.ID() != there.ID() || here.Key() != there.Key() {
		t.Errorf("keys %q and %q of the same tick, want one", here.Key(), there.Key())
	}
}

// TestTickOlderThanRetentionIsRefused: its record may have been purged.
func TestTickOlderThanRetentionIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions()) // retention of 24 hours
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		p := periodic(r, op)
		old := time.Now().Add(-23*time.Hour - 55*time.Minute)
		if _, err := p.Tick(t.Context(), old.Add(time.Second)); err != nil {
			t.Errorf("Tick: %v, want it enqueued", err)
		}
		if added, err := p.Tick(t.Context(), old); added || !errors.Is(err, semel.ErrKeyExpired) {
			t.Errorf("Tick = %v, %v, want ErrKeyExpired", added, err)
		}
	})
}

// TestTickOfAnotherProgramVersion: another version of the program has another
// input. The task keeps the input that it was enqueued with, and later ticks
// are enqueued.
func TestTickOfAnotherProgramVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		older := periodic(r, op, func(o *task.PeriodicOptions[input]) { o.Input = nil })
		now := periodic(r, op)
		sleep(30 * time.Minute)
		tick := time.Now().Add(30 * time.Minute)
		if _, err := older.Tick(t.Context(), tick); err != nil {
			t.Errorf("Tick: %v", err)
		}
		if _, err := now.Tick(t.Context(), tick); !errors.Is(err, semel.ErrMismatch) {
			t.Errorf("Tick = %v, want ErrMismatch", err)
		}
		defer runPeriodic(t, now)()
		sleep(91 * time.Minute)
		if got := string(r.record(now.Call(tick)).Input); got != `{"N":0}` {
			t.Errorf("the input is %s, want the first version's", got)
		}
		r.wantState(now.Call(tick.Add(time.Hour)), store.Pending)
	})
}

// TestPeriodicRunEnds when the engine is closed, when a tick cannot be
// enqueued, and when the schedule has no further ticks and its context ends.
func TestPeriodicRunEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		large := semel.Define("large", semel.OperationOptions[string]{Retry: &semel.Retry{}})
		r := newRig(t, memory.New(memory.Options{MaxOutcome: 1000}), task.Options{}, op, large)
		p, err := task.NewPeriodic(r.Engine, task.PeriodicOptions[string]{
			Name: "p", Schedule: task.Every(time.Hour), Operation: large, Scope: semel.Shared(),
			Input: func(time.Time) string { return strings.Repeat("x", 2000) },
		})
		check.Require(t, err, "NewPeriodic")
		check.Fails(t, p.Run(t.Context()), "Run")
		once := periodic(r, op, func(o *task.PeriodicOptions[input]) { o.Schedule = singleTick(time.Now().Add(time.Hour)) })
		stop := runPeriodic(t, once)
		sleep(2 * time.Hour)
		stop()
		closed := newRig(t, r.mem, task.Options{}, op)
		_ = closed.Close(t.Context())
		check.ErrorIs(t, periodic(closed, op).Run(t.Context()), semel.ErrClosed, "Run")
	})
}

// singleTick is a schedule of one tick.
type singleTick time.Time

func (o singleTick) Next(t time.Time) time.Time {
	if tick := time.Time(o); tick.After(t) {
		return tick
	}
	return time.Time{}
}

func TestNewPeriodicRefuses(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", atomicOptions())
	short := semel.Define("short", semel.OperationOptions[input]{Retention: 10 * time.Minute, Retry: &semel.Retry{}})
	callers := semel.Define("callers", semel.OperationOptions[input]{})
	unknown := semel.Define("unknown", atomicOptions())
	r := newRig(t, memory.New(memory.Options{}), task.Options{}, op, short, callers)
	for field, change := range map[string]func(o *task.PeriodicOptions[input]){
		"Name":      func(o *task.PeriodicOptions[input]) { o.Name = strings.Repeat("n", 201) },
		"Operation": func(o *task.PeriodicOptions[input]) { o.Operation = nil },
		"Scope":     func(o *task.PeriodicOptions[input]) { o.Scope = semel.Scope{} },
		"CatchUp":   func(o *task.PeriodicOptions[input]) { o.CatchUp = -1 },
		"Skew":      func(o *task.PeriodicOptions[input]) { o.Skew = -1 },
		"Priority":  func(o *task.PeriodicOptions[input]) { o.Priority = 5 },
		"Schedule":  func(o *task.PeriodicOptions[input]) { o.Schedule = task.Every(0) },
		"Retention": func(o *task.PeriodicOptions[input]) { o.Operation = short }, // CatchUp and Skew together are not less
		// The tasks of its ticks would never run.
		"Retry":      func(o *task.PeriodicOptions[input]) { o.Operation = callers },
		"Operations": func(o *task.PeriodicOptions[input]) { o.Operation = unknown },
	} {
		o := task.PeriodicOptions[input]{Name: "p", Schedule: task.Every(time.Hour), Operation: op, Scope: semel.Shared()}
		change(&o)
		_, err := task.NewPeriodic(r.Engine, o)
		if wrong, ok := errtype.Find[*semel.FieldError](err); !ok || wrong.Field != field {
			t.Errorf("got %v, want an error that names %s", err, field)
		}
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		v := check.Must(time.Parse(time.RFC3339Nano, text))(t)
		return v
	}
	for _, tt := range []struct {
		every      time.Duration
		from, next string
	}{
		{time.Minute, "2026-03-01T10:00:00Z", "2026-03-01T10:01:00Z"},
		{time.Minute, "2026-03-01T10:00:59.999999999Z", "2026-03-01T10:01:00Z"},
		{7 * time.Second, "1970-01-01T00:00:07Z", "1970-01-01T00:00:14Z"},
		{7 * time.Second, "1969-12-31T23:59:58Z", "1970-01-01T00:00:00Z"},
		{24 * time.Hour, "2026-03-01T10:00:00+05:00", "2026-03-02T05:00:00+05:00"},
	} {
		if got := task.Every(tt.every).Next(at(tt.from)); !got.Equal(at(tt.next)) {
			t.Errorf("Every(%v) after %s = %v, want %s", tt.every, tt.from, got, tt.next)
		}
	}
}

// TestCronSchedules: cron schedules use UTC unless they name a zone, on every
// machine, and handle daylight saving time as documented.
func TestCronSchedules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ spec, from, want string }{
		"UTC":                        {"0 3 * * *", "2026-03-28T12:00", "29T03:00 30T03:00 31T03:00"},
		"a zone":                     {"CRON_TZ=Europe/Berlin 0 3 * * *", "2026-06-28T12:00", "29T01:00 30T01:00 01T01:00"},
		"an hour that is left out":   {"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-27T12:00", "28T01:30 30T00:30 31T00:30"},
		"an hour that comes twice":   {"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00", "25T00:30 25T01:30 26T01:30"},
		"each half of it":            {"CRON_TZ=Europe/Berlin */30 2 * * *", "2026-10-25T00:00", "25T00:30 25T01:00 25T01:30"},
		"midnight, without a change": {"@daily", "2026-10-24T12:00", "25T00:00 26T00:00 27T00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule := check.Must(cron.ParseStandard(tt.spec))(t)
			var _ task.Schedule = schedule
			at := check.Must(time.Parse("2006-01-02T15:04", tt.from))(t)
			var got []string
			for range 3 {
				at = schedule.Next(at)
				got = append(got, at.UTC().Format("02T15:04"))
			}
			if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
				t.Errorf("the ticks differ (-want +got):\n%s", diff)
			}
		})
	}
}
