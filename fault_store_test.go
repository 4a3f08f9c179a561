package semel_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var (
	_ store.TxStore[*memory.Tx] = (*wire)(nil)
	_ store.Auditor             = (*wire)(nil)
	_ store.Dequeuer            = (*wire)(nil)
)

// What goes over a wire.
const (
	swapCall   = "swap"
	getCall    = "get"
	scanCall   = "scan"
	purgeCall  = "purge"
	atomicCall = "atomic"
	swapTxCall = "swaptx"
	queueCall  = "dequeue"
	againCall  = "dequeue again"
	notedCall  = "noted"
	notesCall  = "notes"
	capsCall   = "capabilities"
)

var (
	errCut  = errors.New("connection cut")
	errDead = errors.New("process is dead")
)

// request is one call of the store, as a plan sees it.
type request struct {
	kind    string
	n       int // how many of its kind went before, and one
	changes []store.Change
	id      store.ID // of an atomic call
	dequeue store.Dequeue
}

// to is the state that a swap of one change asks for.
func (r request) to() store.State {
	if len(r.changes) == 0 {
		return store.Absent
	}
	return r.changes[0].To.State
}

func (r request) writes() bool {
	return slices.Contains([]string{swapCall, atomicCall, swapTxCall, notedCall, purgeCall, queueCall}, r.kind)
}

// fault is what becomes of one call. The zero fault lets it through.
type fault struct {
	before error             // the answer; nothing was applied
	after  error             // the answer; it was applied
	hang   bool              // not applied, and no answer until the context ends
	mute   bool              // applied, and no answer until the context ends
	busy   bool              // another open transaction holds the record
	refuse error             // the answer to the change alone: refused
	forge  *store.SwapResult // the result of the change, for any current record
	twice  bool              // the driver runs the statement twice
	gate   <-chan struct{}   // not applied before it is closed
	commit commitFault
}

// commitFault is what becomes of the COMMIT of one transaction.
type commitFault uint8

const (
	commitAnswered commitFault = iota
	commitApplied              // it committed, and the answer was lost
	commitDropped              // it rolled back, and the answer was lost
	commitRefused              // it rolled back, and says so
	commitNoted                // it committed, says so, and has an error all the same
	commitOpen                 // it is still under way; release lets it go on
)

// wire is one process's way to a store that others share. It remembers what
// went over it, and a plan says what goes wrong.
type wire struct {
	*memory.Store

	capabilities func(*store.Capabilities) // nil: as they are

	mu       sync.Mutex // guards what follows
	plan     func(request) fault
	calls    map[string]int
	sent     []store.Change
	open     int
	most     int // calls under way at a time
	late     chan struct{}
	lateDone chan error
}

func newWire(s *memory.Store) *wire {
	return &wire{Store: s, calls: make(map[string]int), late: make(chan struct{}), lateDone: make(chan error, 1)}
}

// on sets what goes wrong from now on. The counts of requests start anew.
func (w *wire) on(plan func(request) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = plan
	clear(w.calls)
}

// heal lets everything through from now on.
func (w *wire) heal() { w.on(nil) }

// die makes every call from now on an error: the process is gone, as far as the
// store can tell.
func (w *wire) claimAndCrash() { w.on(func(request) fault { return fault{before: errDead} }) }

// blackHole makes every call from now on stay without an answer.
func (w *wire) blackHole() { w.on(func(request) fault { return fault{hang: true} }) }

// changes returns this process's writes, in order.
func (w *wire) changes() []store.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// count returns how many calls of a kind began since the last plan.
func (w *wire) count(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[kind]
}

// total returns how many calls began since the last plan.
func (w *wire) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for _, n := range w.calls {
		sum += n
	}
	return sum
}

// underWay returns how many calls are unanswered now, and how many at most were
// at a time.
func (w *wire) underWay() (now, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.most
}

func (w *wire) enter(r request) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	w.most = max(w.most, w.open)
	w.calls[r.kind]++
	r.n = w.calls[r.kind]
	w.sent = append(w.sent, r.changes...)
	if w.plan == nil {
		return fault{}
	}
	return w.plan(r)
}

func (w *wire) createExisting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
}

func (w *wire) note(c *store.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, *c)
}

// pass waits for the gate, if there is one.
func (f fault) pass(ctx context.Context) error {
	if f.gate == nil {
		return nil
	}
	select {
	case <-f.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// through sends one call, and does to it what the plan says.
func through[T any](ctx context.Context, w *wire, r request, apply func(f fault) (T, error)) (T, error) {
	f := w.enter(r)
	defer w.createExisting()
	var none T
	if err := f.pass(ctx); err != nil {
		return none, err
	}
	switch {
	case f.before != nil:
		return none, f.before
	case f.hang:
		<-ctx.Done()
		return none, ctx.Err()
	}
	v, err := apply(f)
	if f.twice {
		v, err = apply(f)
	}
	switch {
	case f.after != nil:
		return none, f.after
	case f.mute:
		<-ctx.Done()
		return none, ctx.Err()
	}
	return v, err
}

// answered applies the changes unless the fault answers in the store's place.
func answered(f fault, n int, apply func() ([]store.SwapResult, error)) ([]store.SwapResult, error) {
	if !f.busy && f.refuse == nil && f.forge == nil {
		return apply()
	}
	answers := make([]store.SwapResult, n)
	for i := range answers {
		answers[i] = store.SwapResult{Busy: f.busy, Err: f.refuse}
		if f.forge != nil {
			answers[i] = *f.forge
		}
	}
	return answers, nil
}

func (w *wire) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	return through(ctx, w, request{kind: swapCall, changes: changes}, func(f fault) ([]store.SwapResult, error) {
		return answered(f, len(changes), func() ([]store.SwapResult, error) { return w.Store.Swap(ctx, changes) })
	})
}

func (w *wire) SwapTx(ctx context.Context, tx *memory.Tx, changes []store.Change) ([]store.SwapResult, error) {
	return through(ctx, w, request{kind: swapTxCall, changes: changes}, func(f fault) ([]store.SwapResult, error) {
		return answered(f, len(changes), func() ([]store.SwapResult, error) { return w.Store.SwapTx(ctx, tx, changes) })
	})
}

func (w *wire) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	return through(ctx, w, request{kind: notedCall, changes: []store.Change{c}}, func(f fault) (store.SwapResult, error) {
		answers, err := answered(f, 1, func() ([]store.SwapResult, error) {
			answer, err := w.Store.SwapNoted(ctx, c, n)
			return []store.SwapResult{answer}, err
		})
		return answers[0], err
	})
}

func (w *wire) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	kind := queueCall
	if d.Reread {
		kind = againCall
	}
	return through(ctx, w, request{kind: kind, dequeue: d}, func(f fault) ([]store.Record, error) {
		if f.busy { // another open transaction holds all due records
			return nil, nil
		}
		return w.Store.Dequeue(ctx, d)
	})
}

func (w *wire) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	return through(ctx, w, request{kind: notesCall}, func(fault) ([]store.Note, error) { return w.Store.Notes(ctx, id) })
}

func (w *wire) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	return through(ctx, w, request{kind: getCall}, func(f fault) ([]store.SwapResult, error) {
		return answered(f, len(ids), func() ([]store.SwapResult, error) { return w.Store.Get(ctx, ids) })
	})
}

func (w *wire) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	return through(ctx, w, request{kind: scanCall}, func(fault) ([]store.Record, error) { return w.Store.Scan(ctx, q) })
}

func (w *wire) Purge(ctx context.Context, limit int) (int, error) {
	return through(ctx, w, request{kind: purgeCall}, func(fault) (int, error) { return w.Store.Purge(ctx, limit) })
}

func (w *wire) Capabilities(ctx context.Context) (store.Capabilities, error) {
	return through(ctx, w, request{kind: capsCall}, func(fault) (store.Capabilities, error) {
		c, err := w.Store.Capabilities(ctx)
		if w.capabilities != nil {
			w.capabilities(&c)
		}
		return c, err
	})
}
