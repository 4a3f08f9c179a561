package semel

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/lane"
	"github.com/semelgo/semel/store"
)

// lanes are where the changes and the reads of all callers go to the store
// together. Without them, each goes by itself.
type batching struct {
	swaps *lane.Lane[store.ID, store.Change, store.SwapResult]
	gets  *lane.Lane[store.ID, store.ID, store.SwapResult]
	busy  busyRecords
	steps lane.Steps // nil: things happen by themselves
}

func (l *batching) open(s store.Store, caps store.Capabilities, o *Options) {
	l.steps = lane.StepsOf(s)
	if caps.Flushers == 0 {
		return
	}
	swaps := lane.Config[store.ID, store.Change, store.SwapResult]{
		Flush: s.Swap, Key: func(c *store.Change) store.ID { return c.To.ID }, Compare: compareIDs,
		Flushers: caps.Flushers, Crowd: crowd, MaxBatch: caps.MaxBatch, MaxWaiting: o.MaxQueued, Timeout: o.RecordTimeout,
		Within: batchDeadline, Steps: l.steps,
	}
	if g, ok := s.(store.BatchJoiner); ok && g.Self() == s {
		swaps.Gather = g.SwapJoinable
	}
	if caps.Flushers > 1 {
		swaps.Kind = kindOf
	}
	l.swaps = lane.New(swaps)
	l.gets = lane.New(lane.Config[store.ID, store.ID, store.SwapResult]{
		Flush: s.Get, Key: func(id *store.ID) store.ID { return *id }, Compare: compareIDs, Shared: true,
		Flushers: caps.Flushers, Crowd: crowd, MaxBatch: maxReads, MaxWaiting: o.MaxQueued, Timeout: o.RecordTimeout,
		Within: batchDeadline, Steps: l.steps,
	})
}

// kindOf tells claims from ends, which are statements of their own. Where one batch is
// under way at a time, who is left behind would wait for the whole of it.
func kindOf(c *store.Change) int { return int(c.If.State) }

// spanned is by, for a lane.
func batchDeadline(ctx context.Context, end time.Time) (context.Context, func()) {
	b := new(batchContext)
	b.until(ctx, end)
	return b, b.end
}

// bounded is a span that nothing ends before its deadline but its parent, while it is
// used.
type batchContext struct{ lazyDeadline }

// Besides returns what ends the context besides its deadline, for a store that bounds
// its waiting by that deadline itself.
func (b *batchContext) Besides() context.Context { return b.parent }

func compareIDs(a, b store.ID) int { return bytes.Compare(a[:], b[:]) }

// crowd is how many wait when a second batch pays, as measured on PostgreSQL and two
// processors with 8 to 256 callers.
const crowd = 4

// maxReads is the most records that are read together: each can be large.
const maxReads = 256

// run runs f beside its caller.
func (l *batching) goRun(what string, f func()) {
	if l.steps != nil {
		l.steps.Go(what, f)
		return
	}
	go f()
}

// idle waits until nothing is on its way, for those who have given up too.
func (l *batching) idle(ctx context.Context) error {
	if l.swaps == nil {
		return nil
	}
	return errors.Join(l.swaps.Wait(ctx), l.gets.Wait(ctx))
}

// unsent says that an error came before anything was sent to the store.
func isNotSent(err error) bool {
	return errors.Is(err, lane.ErrNotSent) || errors.Is(err, lane.ErrFull)
}

// left is the error of a change that was given up on its way, or nil.
func asAbandoned(err error) *lane.LeftError[store.SwapResult] {
	e, _ := errors.AsType[*lane.LeftError[store.SwapResult]](err)
	return e
}

// swapTogether is swap, together with the changes of others. What that led to
// nothing with is asked again alone, so that nobody suffers from it again; and so
// is, from then on, what an open transaction of somebody else holds. All of it takes
// no longer than one asking may.
func (c *Core) swapBatched(ctx context.Context, change *store.Change, tries int) (store.SwapResult, error) {
	if c.batching.swaps == nil || c.batching.busy.has(change.To.ID) {
		return c.swap(ctx, change, tries)
	}
	begun := now()
	must := change.If.State == store.InProgress && change.If.Owner == change.To.Owner // a leader's end: it had its turn already
	answer, err := c.batching.swaps.Do(ctx, *change, must)
	switch {
	case err == nil:
		c.observeBusy(change.To.ID, answer.Busy)
		return refusal(answer)
	case isNotSent(err), asAbandoned(err) != nil:
		return answer, err
	}
	c.emit(ctx, EventStoreError, change.To, err)
	if tries == 1 || ctx.Err() != nil {
		return answer, err
	}
	ctx, span := withDeadline(ctx, begun.Add(c.options.RecordTimeout))
	defer span.end()
	return c.retrySwap(ctx, change, tries, 2, err)
}

// heard notes what an answer of the store says of others. In a store of one writer
// Busy says nothing of the record.
func (c *Core) observeBusy(id store.ID, busy bool) {
	if c.caps.Exclusive {
		if !busy {
			c.readHint.observeWrite()
		}
		return
	}
	c.batching.busy.observe(id, busy)
}

// busyRecords are those that an open transaction of somebody else holds. They are
// kept out of what goes together: the whole would wait for them.
type busyRecords struct {
	count atomic.Int32
	mu    sync.Mutex
	until map[store.ID]time.Time
}

const (
	// busyFor is how long after it was found busy a record is asked alone.
	busyFor = 5 * time.Second
	// maxBusy bounds how many are remembered.
	maxBusy = 4096
)

func (b *busyRecords) has(id store.ID) bool {
	if b.count.Load() == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.until[id]
	return ok && now().Before(until)
}

// heard remembers what the store has said of a record.
func (b *busyRecords) observe(id store.ID, busy bool) {
	if !busy && b.count.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.until, id); busy {
		b.add(id)
	}
	b.count.Store(int32(len(b.until)))
}

func (b *busyRecords) add(id store.ID) {
	if len(b.until) >= maxBusy {
		for other, until := range b.until {
			if !now().Before(until) {
				delete(b.until, other)
			}
		}
	}
	if len(b.until) >= maxBusy {
		return
	}
	if b.until == nil {
		b.until = make(map[store.ID]time.Time)
	}
	b.until[id] = now().Add(busyFor)
}
