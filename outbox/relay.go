package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// Relay publishes the events of an outbox. Any number of relays, in any number of
// processes, share its lanes: an aggregate belongs to one of 64 lanes, and a lane is
// held by one relay at a time, by a lease that the database checks whenever the relay
// removes an event.
type Relay struct {
	engine    semel.Runner
	table     store.OutboxReader
	fenced    fencedFunc
	publisher Publisher
	options   Options
	operation *semel.Operation[struct{}]
	wakeups   wakeups
	breaker   breaker
	accepted  atomic.Int64 // messages that the broker has confirmed
	running   atomic.Bool

	mu    sync.Mutex
	lanes map[int]*lane // that this relay holds or is about to claim
	work  sync.WaitGroup
}

// fencedFunc changes the outbox in a transaction that commits only while the attempt is
// current.
type fencedFunc func(ctx context.Context, a *adapter.Attempt, fn func(ctx context.Context, tx store.OutboxTx) error) error

// ErrRunning is the error of Run of a relay that is already running.
var ErrRunning = errors.New("outbox: the relay is already running")

// NewRelay returns a relay that publishes the events in the database of e's records.
// Invalid options are a *semel.FieldError.
func NewRelay[Tx any](e *semel.Engine[Tx], p Publisher, o Options) (*Relay, error) {
	if e == nil {
		return nil, invalid("engine", "is nil")
	}
	if p == nil {
		return nil, invalid("publisher", "is nil")
	}
	table := adapter.OutboxOf(e)
	if table == nil {
		return nil, errNoOutbox
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	op := semel.Define(Operation, semel.OperationOptions[struct{}]{Policy: semel.AtLeastOnce(), Lease: o.Lease, Wait: time.Millisecond})
	if err := adapter.CheckOperation(e, op); err != nil { // of the lease
		return nil, err
	}
	return &Relay{
		engine: e, table: table, publisher: p, options: o, operation: op,
		wakeups: wakeups{ready: make(chan struct{}, 1)},
		breaker: newBreaker(),
		lanes:   make(map[int]*lane),
		fenced: func(ctx context.Context, a *adapter.Attempt, fn func(ctx context.Context, tx store.OutboxTx) error) error {
			return adapter.FencedTx(ctx, e, a, func(ctx context.Context, tx Tx) error { return fn(ctx, table.In(tx)) })
		},
	}, nil
}

// Run publishes events until ctx ends. Then it finishes the messages that are being
// published, which takes at most Options.Timeout, gives its lanes back, so that other
// relays can take them at once, and returns nil. It may be called again afterwards.
//
// The error is [ErrRunning], or [semel.ErrClosed] if the engine is closed. Errors of the
// store and of the broker end nothing: Run retries. Stop relays before the engine is
// closed, because Close waits for them.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer r.running.Store(false)
	relays.add(r.engine, &r.wakeups)
	defer relays.remove(r.engine, &r.wakeups)
	members := &membership{relay: r}
	defer members.leave()
	stop, stopLanes := context.WithCancel(ctx)
	defer r.work.Wait()
	defer stopLanes()
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			err = r.poll(ctx, stop, members)
			poll.Reset(jittered(r.options.Poll))
		case <-r.wakeups.ready:
			err = r.kicked(ctx, stop, members)
		}
		switch {
		case errors.Is(err, semel.ErrClosed):
			return err
		case err != nil && ctx.Err() == nil:
			adapter.Report(ctx, r.engine, event.StoreError, store.Record{Operation: Operation}, err)
		}
	}
}

// jittered returns a delay between half and one and a half of d.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// poll finds out which lanes are this relay's, and which have work.
func (r *Relay) poll(ctx, stop context.Context, members *membership) error {
	if err := members.refresh(ctx); err != nil {
		return err
	}
	r.giveBack(members)
	return r.lookForWork(ctx, stop, members)
}

func (r *Relay) lookForWork(ctx, stop context.Context, members *membership) error {
	work, err := r.table.Lanes(ctx)
	if err != nil {
		return err
	}
	for _, w := range work {
		if members.owns(w.Lane) {
			r.wake(stop, w.Lane, w.Redriving)
		}
	}
	return nil
}

// kicked wakes the lanes to which this process has appended.
func (r *Relay) kicked(ctx, stop context.Context, members *membership) error {
	lanes, all := r.wakeups.take()
	if all {
		return r.lookForWork(ctx, stop, members)
	}
	for n := range store.OutboxLanes {
		if lanes&(1<<n) != 0 && members.owns(n) {
			r.wake(stop, n, false)
		}
	}
	return nil
}

// wake makes the goroutine of a lane look for events, and starts it if necessary.
func (r *Relay) wake(stop context.Context, n int, redriving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lanes[n]
	if l == nil {
		lasts, giveBack := context.WithCancel(stop)
		l = &lane{relay: r, number: n, wakeups: make(chan struct{}, 1), giveBack: giveBack, failing: make(map[aggregate]*failure)}
		r.lanes[n] = l
		r.work.Go(func() {
			defer giveBack()
			l.run(lasts)
		})
	}
	if redriving {
		l.redriving.Store(true)
	}
	signal(l.wakeups)
}

// giveBack ends the lanes that belong to other relays now.
func (r *Relay) giveBack(members *membership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, l := range r.lanes {
		if !members.owns(n) {
			l.giveBack()
		}
	}
}

// forget forgets a lane whose goroutine is about to end, and reports whether it may end: not
// if the lane was woken meanwhile, unless it must.
func (r *Relay) forget(l *lane, must bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !must && len(l.wakeups) > 0 {
		return false
	}
	delete(r.lanes, l.number)
	return true
}
