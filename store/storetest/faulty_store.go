package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/semelgo/semel/store"
)

// Faulty is one process's connection to a store, with injected faults. It records
// its calls. It implements store.Auditor and store.Dequeuer; use Plain if the store
// does not.
type Faulty struct {
	inner store.Store

	// Adjust, if not nil, changes what Capabilities returns, or fails it. It is set
	// before the first call.
	Adjust func(ctx context.Context, c *store.Capabilities) error

	deciding sync.Mutex // one call of decide at a time

	mu      sync.Mutex // guards the fields below
	decide  func(Call) Fault
	calls   map[string]int // by method
	total   int
	changes []store.Change
	open    int
	most    int
}

// NewFaulty returns s with the faults that decide returns. decide is called before
// each call, on the goroutine that makes it, for one call at a time. Nil is no
// faults.
func NewFaulty(s store.Store, decide func(Call) Fault) *Faulty {
	f := &Faulty{inner: s}
	f.Decide(decide)
	return f
}

// Decide replaces the function that decides about calls, and starts to count calls
// anew. Nil is no faults.
func (f *Faulty) Decide(decide func(Call) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide, f.calls, f.total = decide, make(map[string]int), 0
}

// Calls returns how many calls were made since Decide.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// CallsOf returns how many calls of a method were made since Decide.
func (f *Faulty) CallsOf(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// Open returns how many calls have not been answered yet, and the largest such
// number so far.
func (f *Faulty) Open() (now, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open, f.most
}

// Changes returns all changes that were requested so far, in their order.
func (f *Faulty) Changes() []store.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.changes)
}

// Plain returns f without the optional interfaces of a store.
func (f *Faulty) Plain() store.Store { return struct{ store.Store }{f} }

// begin counts a call and returns its fault. Each begin has an end.
func (f *Faulty) begin(c Call) Fault {
	f.deciding.Lock()
	defer f.deciding.Unlock()
	f.mu.Lock()
	f.open++
	f.most = max(f.most, f.open)
	f.total++
	f.calls[c.Method]++
	c.N, c.MethodN = f.total, f.calls[c.Method]
	f.changes = append(f.changes, c.Changes...)
	decide := f.decide
	f.mu.Unlock()
	if decide == nil {
		return Fault{}
	}
	return decide(c)
}

func (f *Faulty) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

func (f *Faulty) record(c store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, c)
}

// reach waits for the call's turn. It fails if the call does not reach the store.
func (f Fault) reach(ctx context.Context) error {
	if f.Gate != nil {
		select {
		case <-f.Gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := f.before(); err != nil {
		return err
	}
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// reply is called after a call. It fails if the reply is lost.
func (f Fault) reply(ctx context.Context) error {
	if f.Reply != nil {
		f.Reply()
	}
	if f.Mute {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.After
}

// inject makes a call with the fault that is decided for it.
func inject[A any](ctx context.Context, f *Faulty, c Call, call func(Fault) (A, error)) (A, error) {
	fault := f.begin(c)
	defer f.end()
	var none A
	if err := fault.reach(ctx); err != nil {
		return none, err
	}
	answer, err := call(fault)
	if fault.Twice {
		answer, err = call(fault)
	}
	if lost := fault.reply(ctx); lost != nil {
		return none, lost
	}
	return answer, err
}

// Swap implements store.Store.
func (f *Faulty) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	return inject(ctx, f, Call{Method: "Swap", Changes: changes}, func(fault Fault) ([]store.SwapResult, error) {
		if all, ok := fault.answers(len(changes)); ok {
			return all, nil
		}
		return f.inner.Swap(ctx, changes)
	})
}

// Get implements store.Store.
func (f *Faulty) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	return inject(ctx, f, Call{Method: "Get"}, func(fault Fault) ([]store.SwapResult, error) {
		if all, ok := fault.answers(len(ids)); ok {
			return all, nil
		}
		return f.inner.Get(ctx, ids)
	})
}

// Scan implements store.Store.
func (f *Faulty) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	return inject(ctx, f, Call{Method: "Scan"}, func(Fault) ([]store.Record, error) { return f.inner.Scan(ctx, q) })
}

// Purge implements store.Store.
func (f *Faulty) Purge(ctx context.Context, limit int) (int, error) {
	return inject(ctx, f, Call{Method: "Purge"}, func(Fault) (int, error) { return f.inner.Purge(ctx, limit) })
}

// Capabilities implements store.Store. It is no Call.
func (f *Faulty) Capabilities(ctx context.Context) (store.Capabilities, error) {
	c, err := f.inner.Capabilities(ctx)
	if err != nil || f.Adjust == nil {
		return c, err
	}
	return c, f.Adjust(ctx, &c)
}

// SwapNoted implements store.Auditor.
func (f *Faulty) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	return inject(ctx, f, Call{Method: "SwapNoted", Changes: []store.Change{c}}, func(fault Fault) (store.SwapResult, error) {
		if all, ok := fault.answers(1); ok {
			return all[0], nil
		}
		auditor, ok := f.inner.(store.Auditor)
		if !ok {
			return store.SwapResult{}, fmt.Errorf("the store is no Auditor: %w", errors.ErrUnsupported)
		}
		return auditor.SwapNoted(ctx, c, n)
	})
}

// Notes implements store.Auditor.
func (f *Faulty) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	return inject(ctx, f, Call{Method: "Notes"}, func(Fault) ([]store.Note, error) {
		auditor, ok := f.inner.(store.Auditor)
		if !ok {
			return nil, fmt.Errorf("the store is no Auditor: %w", errors.ErrUnsupported)
		}
		return auditor.Notes(ctx, id)
	})
}

// Dequeue implements store.Dequeuer.
func (f *Faulty) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	call := Call{Method: "Dequeue", Dequeue: d}
	if d.Reread {
		call.Method = "Reread"
	}
	return inject(ctx, f, call, func(fault Fault) ([]store.Record, error) {
		if fault.Busy { // another open transaction holds all due records
			return nil, nil
		}
		dequeuer, ok := f.inner.(store.Dequeuer)
		if !ok {
			return nil, fmt.Errorf("the store is no Dequeuer: %w", errors.ErrUnsupported)
		}
		return dequeuer.Dequeue(ctx, d)
	})
}
