package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// PeriodicOptions configure a [Periodic]. Name, Schedule, Operation and Scope
// are required.
type PeriodicOptions[In any] struct {
	// Name distinguishes this schedule from others of the same operation and
	// scope: 1 to 200 bytes. A new name makes a new schedule: it does not know
	// which ticks were enqueued under the old name, and begins with its next
	// tick.
	Name string
	// Schedule defines the times of the ticks.
	Schedule Schedule
	// Operation is the operation that runs at each tick.
	Operation *semel.Operation[In]
	// Scope is the scope of the tasks: semel.Shared() for tasks of the system
	// itself.
	Scope semel.Scope
	// Input returns the input of the task of a tick. It must return the same
	// value in every process, so it may depend on the tick only. Nil means the
	// zero In.
	Input func(tick time.Time) In
	// CatchUp is how late a tick may still be enqueued, after a time in which
	// no process ran or the store did not answer. Older ticks are skipped, and
	// so are ticks before the schedule's first run. Zero means 5 minutes.
	CatchUp time.Duration
	// Skew is the largest difference between the clocks of any two processes.
	// Zero means 5 minutes. The Retention of the operation must be longer than
	// CatchUp and Skew together; otherwise a tick whose record was purged could
	// be enqueued again. NewPeriodic checks this.
	Skew time.Duration
	// Priority is the priority of the tasks, as in semel.EnqueueOptions.
	Priority int
}

func (o *PeriodicOptions[In]) valid() error {
	const maxName = 200 // leaves room in a key for the tick
	switch {
	case o.Name == "" || len(o.Name) > maxName:
		return invalid("Name", "must be 1 to "+strconv.Itoa(maxName)+" bytes, got "+strconv.Itoa(len(o.Name)))
	case o.Operation == nil:
		return invalid("Operation", "is required")
	case o.Scope == semel.Scope{}:
		return invalid("Scope", "is required; semel.Shared() says that the tasks are the system's own")
	case o.CatchUp < 0:
		return invalid("CatchUp", "is negative: "+o.CatchUp.String())
	case o.Skew < 0:
		return invalid("Skew", "is negative: "+o.Skew.String())
	case o.Priority < store.MinPriority || o.Priority > store.MaxPriority:
		return invalid("Priority", fmt.Sprintf("must be %d to %d", store.MinPriority, store.MaxPriority))
	case o.Schedule == nil:
		return invalid("Schedule", "is required")
	}
	if t := now().UTC(); !o.Schedule.Next(t).After(t) {
		return invalid("Schedule", "has no future tick")
	}
	return nil
}

func (o *PeriodicOptions[In]) setDefaults() {
	if o.Input == nil {
		o.Input = func(time.Time) (none In) { return none }
	}
	if o.CatchUp == 0 {
		o.CatchUp = 5 * time.Minute
	}
	if o.Skew == 0 {
		o.Skew = 5 * time.Minute
	}
}

// Periodic enqueues a task at each tick of a schedule. Any number of processes
// may run the same schedule: the key of a task consists of the schedule's name
// and the tick, so each tick has one record and is run once. Workers run the
// tasks, in these or in other processes.
type Periodic[In any] struct {
	runner    semel.Runner
	retention time.Duration
	options   PeriodicOptions[In]
}

// NewPeriodic returns a Periodic that enqueues tasks through e. The error is a
// *semel.FieldError if an option is invalid or if no worker could run the
// operation: it must have Retry and be one of the engine's Operations.
func NewPeriodic[In any](e semel.Runner, o PeriodicOptions[In]) (*Periodic[In], error) {
	if e == nil {
		return nil, invalid("engine", "is nil")
	}
	if err := o.valid(); err != nil {
		return nil, err
	}
	o.setDefaults()
	if err := adapter.CheckWorker(e, o.Operation, false); err != nil {
		return nil, err
	}
	p := &Periodic[In]{runner: e, retention: adapter.TimesOf(e, o.Operation).Retention, options: o}
	if forgotten := o.CatchUp + o.Skew; p.retention <= forgotten {
		return nil, invalid("Retention", "of "+o.Operation.Name()+" must be longer than CatchUp and Skew together, "+
			forgotten.String()+"; it is "+p.retention.String())
	}
	return p, nil
}

// Call returns the call of the task of a tick.
func (p *Periodic[In]) Call(tick time.Time) semel.Call {
	tick = tick.UTC()
	key := p.options.Name + "@" + tick.Format(time.RFC3339Nano)
	return p.options.Operation.Call(p.options.Scope, key, p.options.Input(tick))
}

// Tick enqueues the task of one tick, whether or not the schedule contains it.
// It is for programs whose ticks come from elsewhere. added reports whether
// this call created the record; it is false, without an error, if the tick had
// been enqueued before. The error is [semel.ErrKeyExpired] for a tick so old
// that its record may have been purged. A tick in the future waits for its
// time.
func (p *Periodic[In]) Tick(ctx context.Context, tick time.Time) (added bool, err error) {
	if now().Sub(tick) >= p.retention-p.options.Skew {
		return false, fmt.Errorf("enqueue the tick of %s: %w", tick.UTC().Format(time.RFC3339Nano), semel.ErrKeyExpired)
	}
	return semel.Enqueue(ctx, p.runner, p.Call(tick), semel.EnqueueOptions{At: tick, Priority: p.options.Priority})
}

// Run enqueues each tick at its time by the process's clock, until ctx ends;
// then it returns nil. It begins with the ticks of the last CatchUp. The first
// Run of a schedule, in any process, begins with the next tick: a record of the
// operation "semel.periodic" stores the time of the first run, and no process
// enqueues ticks from before it.
//
// While the store does not answer, Run retries a tick for as long as CatchUp
// allows. If a tick cannot be enqueued at all, for example because of its
// input, Run returns the error. If the engine is closed, Run returns
// [semel.ErrClosed].
func (p *Periodic[In]) Run(ctx context.Context) error {
	last, err := p.startTime(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	for {
		tick := p.options.Schedule.Next(last.UTC())
		if !tick.After(last) { // the schedule has no further tick
			<-ctx.Done()
			return nil
		}
		if !sleepUntil(ctx, tick) {
			return nil
		}
		if err := p.enqueue(ctx, tick); err != nil || ctx.Err() != nil {
			return err
		}
		last = later(tick, now().Add(-p.options.CatchUp))
	}
}

// enqueue enqueues a tick whose time has come, unless it is older than CatchUp.
// A nil error means that the tick needs no further work.
func (p *Periodic[In]) enqueue(ctx context.Context, tick time.Time) error {
	for ctx.Err() == nil && now().Sub(tick) <= p.options.CatchUp {
		_, err := p.Tick(ctx, tick)
		switch {
		case err == nil, errors.Is(err, semel.ErrMismatch), errors.Is(err, semel.ErrKeyExpired):
			return nil // a mismatch means that another version of the program enqueued the tick
		case isFinal(err):
			return err
		}
		wait := semel.RetryAfter(err)
		_ = clock.Sleep(ctx, wait/2+rand.N(wait+1)) // the loop ends with ctx
	}
	return nil
}

// sleepUntil waits for t and reports whether t came before ctx ended. It reads
// the clock again every minute, because the clock may be set in the meantime.
func sleepUntil(ctx context.Context, t time.Time) bool {
	for {
		left := t.Sub(now())
		if left <= 0 {
			return ctx.Err() == nil
		}
		if clock.Sleep(ctx, min(left, time.Minute)) != nil {
			return false
		}
	}
}
