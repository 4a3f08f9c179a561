package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// PeriodicOptions say what is enqueued at which times. Name, Schedule, Operation and
// Scope are required.
type PeriodicOptions[In any] struct {
	// Name tells this schedule from others of the operation and scope: 1 to 200
	// bytes. Renaming it forgets which ticks were enqueued, and makes it a new
	// schedule, which begins with its next tick.
	Name string
	// Schedule says when the ticks are.
	Schedule Schedule
	// Operation is what is to be run at each.
	Operation *semel.Operation[In]
	// Scope is whose tasks they are: semel.Shared() for those of the system.
	Scope semel.Scope
	// Input is what a tick is enqueued with. It must say the same in every process,
	// so it depends on nothing but the tick. Nil: the zero In.
	Input func(tick time.Time) In
	// CatchUp is how late a tick is still enqueued, because no process ran at its
	// time or the store did not answer. Those that are older are passed over, and so
	// are those from before the schedule was first run. Zero: 5 minutes.
	CatchUp time.Duration
	// Skew is how far apart the clocks of any two processes may be. Zero: 5
	// minutes. A record must be kept for longer than CatchUp and Skew together, or
	// a tick that was done and purged could come again: Retention is held to that.
	Skew time.Duration
	// Priority is that of the tasks, as in semel.EnqueueOptions.
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
		return invalid("Schedule", "has no tick to come")
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

// Periodic enqueues a task at each tick of a schedule. Any number of processes run
// the same one: the key of a task is made of the name and the tick, so each tick is
// one record and is run once. Workers run it, in these processes or in others.
type Periodic[In any] struct {
	runner    semel.Runner
	retention time.Duration
	options   PeriodicOptions[In]
}

// NewPeriodic returns what enqueues the ticks of o by e. Wrong options, and an
// operation that no worker could run, are a *semel.FieldError: it has semel.Retry,
// and is among those that e was given.
func NewPeriodic[In, Tx any](e *semel.Engine[Tx], o PeriodicOptions[In]) (*Periodic[In], error) {
	if e == nil {
		return nil, invalid("engine", "is nil")
	}
	if err := o.valid(); err != nil {
		return nil, err
	}
	o.setDefaults()
	if err := e.CheckWorker(o.Operation, false); err != nil {
		return nil, err
	}
	p := &Periodic[In]{runner: e, retention: e.Times(o.Operation).Retention, options: o}
	if forgotten := o.CatchUp + o.Skew; p.retention <= forgotten {
		return nil, invalid("Retention", "of "+o.Operation.Name()+" must be longer than CatchUp and Skew together, "+
			forgotten.String()+"; it is "+p.retention.String())
	}
	return p, nil
}

// Call returns the call that is the task of a tick.
func (p *Periodic[In]) Call(tick time.Time) semel.Call {
	tick = tick.UTC()
	key := p.options.Name + "@" + tick.Format(time.RFC3339Nano)
	return p.options.Operation.Call(p.options.Scope, key, p.options.Input(tick))
}

// Tick enqueues the task of one tick, whether the schedule has it or not: it is for
// programs whose ticks come from elsewhere. added says that this call added it; a
// tick that was enqueued before is no error and adds nothing. One that is so old
// that its record may be gone is [semel.ErrKeyExpired]. One to come waits for its
// time.
func (p *Periodic[In]) Tick(ctx context.Context, tick time.Time) (added bool, err error) {
	if now().Sub(tick) >= p.retention-p.options.Skew {
		return false, fmt.Errorf("enqueue the tick of %s: %w", tick.UTC().Format(time.RFC3339Nano), semel.ErrKeyExpired)
	}
	return semel.Enqueue(ctx, p.runner, p.Call(tick), semel.EnqueueOptions{At: tick, Priority: p.options.Priority})
}

// Run enqueues the ticks as they come by the process's clock, and at first those of
// the last CatchUp, until ctx ends; then it returns nil. The first Run of a schedule, in
// any process, begins with the next tick: when that was is kept in a record of the
// operation "semel.periodic", and no process enqueues ticks from before it. A tick that the store does
// not answer for is asked for again, as long as CatchUp says. A tick that cannot be
// enqueued at all, because of its input for instance, ends Run with the error, and
// so does a closed engine, with [semel.ErrClosed].
func (p *Periodic[In]) Run(ctx context.Context) error {
	last, err := p.startTime(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	for {
		tick := p.options.Schedule.Next(last.UTC())
		if !tick.After(last) { // there is none any more
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

// enqueue enqueues a tick that has come, unless it comes too late. Without an error
// nothing is left to do for it.
func (p *Periodic[In]) enqueue(ctx context.Context, tick time.Time) error {
	for now().Sub(tick) <= p.options.CatchUp {
		_, err := p.Tick(ctx, tick)
		switch {
		case err == nil, errors.Is(err, semel.ErrMismatch), errors.Is(err, semel.ErrKeyExpired):
			return nil // of another input it has been enqueued by another version of the program
		case isFinal(err):
			return err
		}
		wait := semel.RetryAfter(err)
		if !sleep(ctx, wait/2+rand.N(wait+1)) {
			return nil
		}
	}
	return nil
}

// sleepUntil waits for t, and reports whether it came before ctx ended. It looks at
// the clock again every minute, since that may be set meanwhile.
func sleepUntil(ctx context.Context, t time.Time) bool {
	for {
		left := t.Sub(now())
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !sleep(ctx, min(left, time.Minute)) {
			return false
		}
	}
}

// sleep waits d, and reports whether it was over before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
