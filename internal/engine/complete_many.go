package engine

import (
	"context"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Completion is the end of one attempt, to be recorded together with others.
type Completion struct {
	Attempt *Attempt
	Value   any   // as for Attempt.End
	Err     error // as for Attempt.End

	// Outcome and EndErr are the results that End would have returned.
	Outcome *Outcome
	EndErr  error

	step protocol.Step
	own  Outcome
}

// CompleteMany ends attempts as [Attempt.End] does, in one round trip.
func CompleteMany(ctx context.Context, c *Core, ends []*Completion) (rest []*Completion) {
	for len(ends) > c.caps.MaxBatch {
		rest = append(rest, completeBatch(ctx, c, ends[:c.caps.MaxBatch])...)
		ends = ends[c.caps.MaxBatch:]
	}
	return append(rest, completeBatch(ctx, c, ends)...)
}

func completeBatch(ctx context.Context, c *Core, ends []*Completion) (rest []*Completion) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	ready, changes := make([]*Completion, 0, len(ends)), make([]store.Change, 0, len(ends))
	last := make(latestAttempts, len(ends))
	for _, e := range ends {
		last.add(e.Attempt)
	}
	for _, e := range ends {
		d, ok := completionOf(ctx, e.Attempt, e)
		if !ok || last[d.Change.To.ID] != e.Attempt { // a batch has one change for each record
			rest = append(rest, e)
			continue
		}
		delete(last, d.Change.To.ID)
		e.step = d.Step
		ready, changes = append(ready, e), append(changes, d.Change)
	}
	if len(changes) == 0 {
		return rest
	}
	answers, err := c.batching.swapAll(ctx, changes)
	if err != nil {
		c.emit(ctx, event.StoreError, store.Record{}, err)
		return append(rest, ready...)
	}
	for i, e := range ready {
		if !answers[i].Applied(changes[i]) || !e.Attempt.ended.CompareAndSwap(false, true) {
			rest = append(rest, e)
			continue
		}
		e.applied(ctx, &changes[i])
	}
	return rest
}

// completionOf returns the change that ends the attempt, if one change does. It
// returns false for an attempt that has ended or whose own transaction has decided.
// If encoding the value panics, it returns false, so that End panics for this
// attempt only.
func completionOf(ctx context.Context, a *Attempt, e *Completion) (d protocol.Decision, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	busy := a.ended.Load() || a.txOutcome.Load() != nil || a.tx.running.Load()
	if busy || e.Err != nil || errWithoutCommit(a) != nil {
		return protocol.Decision{}, false
	}
	var ending protocol.Event
	a.endEvent(ctx, &ending, a.result(ctx, e.Value, nil), nil)
	claimed := a.Record()
	d.Decide(&claimed, &ending)
	return d, d.Answer == protocol.Apply
}

// applied finishes an attempt whose change was applied.
func (e *Completion) applied(ctx context.Context, change *store.Change) {
	a := e.Attempt
	now := &e.own.Record
	*now = recordAfter(*change, a.Record())
	a.renewer.stop()
	defer func() { // even if an Observer panics
		e.Outcome = &e.own
		a.close(now, nil)
	}()
	a.emitEnd(ctx, e.step, now, nil)
}
