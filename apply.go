package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// errBusy means that another open transaction holds the record.
var errBusy = errors.New("semel: busy")

// errRefused means that the store will never write this change.
var errRefused = errors.New("semel: refused by the store")

// errAfterLost means that a refused change may have been applied by an earlier try
// whose reply was lost.
var errAfterLost = errors.New("after no answer")

// swap writes one change, outside of a batch. Repeating a change is safe, so a try
// without a reply is repeated: at once, then with exponential backoff, until ctx
// ends or tries are used up (0: until ctx ends). After a lost reply, Busy is no
// answer either, because the transaction that holds the record may be the lost try
// itself.
func (c *Core) swap(ctx context.Context, change *store.Change, tries int) (store.SwapResult, error) {
	try, lost := 1, error(nil)
	if c.inProcess != nil {
		answer, err := c.inProcess.SwapOne(ctx, *change)
		switch {
		case err == nil && answer.Err == nil:
			return answer, nil
		case err == nil:
			return refusal(answer)
		}
		c.emit(ctx, EventStoreError, change.To, err)
		if tries == 1 || ctx.Err() != nil {
			return store.SwapResult{}, err
		}
		try, lost = 2, err
	}
	ctx, span := withTimeout(ctx, c.options.RecordTimeout)
	defer span.end()
	return c.retrySwap(ctx, change, tries, try, lost)
}

// retrySwap continues swap with the given try, after an earlier one failed.
func (c *Core) retrySwap(ctx context.Context, change *store.Change, tries, try int, lost error) (store.SwapResult, error) {
	wait := 5 * time.Millisecond
	for ; ; try++ {
		answers, err := c.store.Swap(ctx, []store.Change{*change})
		if err == nil {
			c.observeBusy(change.To.ID, answers[0].Busy)
		}
		if err == nil && answers[0].Busy && lost != nil {
			err = lost
		}
		if err == nil {
			answer, err := refusal(answers[0])
			if err != nil && lost != nil {
				err = fmt.Errorf("%w %w: %w", err, errAfterLost, lost)
			}
			return answer, err
		}
		lost = err
		c.emit(ctx, EventStoreError, change.To, err)
		if try == tries || ctx.Err() != nil {
			return store.SwapResult{}, err
		}
		if try == 1 {
			continue
		}
		if pause(ctx, jitter(wait)) != nil {
			return store.SwapResult{}, err
		}
		wait = min(2*wait, time.Second)
	}
}

// refusal returns the error of a change that the store refuses.
func refusal(answer store.SwapResult) (store.SwapResult, error) {
	if answer.Err != nil {
		return answer, fmt.Errorf("%w: %w", errRefused, answer.Err)
	}
	return answer, nil
}

// get reads the current record. It reads in a batch first, and alone after an
// error, with as many tries as swap.
func (c *Core) get(ctx context.Context, id store.ID) (store.Record, error) {
	if c.inProcess != nil {
		if answer, err := c.inProcess.GetOne(ctx, id); err == nil || ctx.Err() != nil {
			return recordOf(answer), err
		}
	}
	begun := now()
	if c.batching.gets != nil {
		answer, err := c.batching.gets.Do(ctx, id, false)
		if err == nil || isNotSent(err) || ctx.Err() != nil {
			return recordOf(answer), err
		}
	}
	ctx, span := withDeadline(ctx, begun.Add(c.options.RecordTimeout))
	defer span.end()
	var last error
	for range askTries {
		answers, err := c.store.Get(ctx, []store.ID{id})
		if err == nil {
			return recordOf(answers[0]), nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return store.Record{}, last
}

func recordOf(s store.SwapResult) store.Record {
	if s.Record == nil {
		return store.Record{}
	}
	return *s.Record
}

// recordAfter returns the record after change is applied.
func recordAfter(change store.Change, before store.Record) store.Record {
	applyTo(&change, &before)
	return before
}

// applyTo applies change to r.
func applyTo(change *store.Change, r *store.Record) {
	priority, input, outcome := r.Priority, r.Input, r.Outcome
	*r = change.To
	r.Since = 0
	if change.If != (store.Token{}) {
		r.Priority = priority // written by the create, and never changed
	}
	if r.Input == nil {
		r.Input = input
	}
	if r.Outcome == nil {
		r.Outcome = outcome
	}
}

// maxRounds limits how often a decision is repeated because another write was
// applied first. Each round means that another caller made progress.
const maxRounds = 64

// applyAlone applies an event outside of a batch: it decides, writes, and decides
// again on the record that it finds, until a change is applied or none is to be
// made. It returns the current record. The answer is protocol.Apply if a change was
// applied.
func (c *Core) applyAlone(ctx context.Context, current store.Record, e protocol.Event, tries int) (d protocol.Decision, now store.Record, err error) {
	now = current
	err = c.apply(ctx, &now, &e, &d, tries, false)
	return d, now, err
}

// apply is applyAlone with pointers, because the values are large. *at is the
// current record, before and after. If together is set, the change may join a
// batch.
func (c *Core) apply(ctx context.Context, at *store.Record, e *protocol.Event, d *protocol.Decision, tries int, together bool) error {
	for range maxRounds {
		if d.Decide(at, e); d.Answer != protocol.Apply {
			return nil
		}
		if call, ok := e.Request.(*Call); ok && e.Step == protocol.StepClaim && d.Step == protocol.StepDoubt {
			d.Change.To.Outcome = c.crashed(call.op, *at)
		}
		answer, err := c.swapAny(ctx, &d.Change, tries, together)
		switch {
		case err != nil:
			return err
		case answer.HasToken(d.Change.To.Token):
			applyTo(&d.Change, at)
			return nil
		case answer.Busy:
			return errBusy
		}
		*at = recordOf(answer)
	}
	*d = protocol.Decision{Answer: protocol.Wait}
	return nil
}

// swapAny is swapBatched or swap.
func (c *Core) swapAny(ctx context.Context, change *store.Change, tries int, together bool) (store.SwapResult, error) {
	if together && c.batching.swaps != nil {
		return c.swapBatched(ctx, change, tries)
	}
	return c.swap(ctx, change, tries)
}

// prove applies an event as a proof: it repeats the change, outside of a batch,
// until the store says that the change is applied or superseded, or ctx ends.
func (c *Core) prove(ctx context.Context, current store.Record, e protocol.Event) (d protocol.Decision, now store.Record, err error) {
	err = retryBusy(ctx, func() error {
		d, now, err = c.applyAlone(ctx, current, e, 0)
		return err
	})
	return d, now, err
}

// retryBusy repeats a function while another open transaction holds the record,
// until ctx ends.
func retryBusy(ctx context.Context, ask func() error) error {
	wait := 5 * time.Millisecond
	for {
		err := ask()
		if !errors.Is(err, errBusy) {
			return err
		}
		if perr := pause(ctx, jitter(wait)); perr != nil {
			return fmt.Errorf("%w: %w", err, perr)
		}
		wait = min(2*wait, 100*time.Millisecond)
	}
}

// complete is completeAlone in a batch. If the batch has no answer, the change is
// repeated alone in the remaining time. *at is the claimed record, and then the
// current one.
func (c *Core) complete(ctx context.Context, claimed func() store.Record, at *store.Record, e *protocol.Event, d *protocol.Decision) error {
	if c.inProcess != nil { // takes no time
		if err := c.apply(ctx, at, e, d, 1, false); err == nil {
			return nil
		}
	}
	deadline := now().Add(c.options.RecordTimeout)
	if c.batching.swaps != nil {
		if err := c.apply(ctx, at, e, d, 1, true); err == nil {
			return nil
		}
	}
	ctx, span := withDeadline(ctx, deadline)
	defer span.end()
	var err error
	*d, *at, err = c.completeAlone(ctx, claimed(), *e)
	return err
}

// completeAlone records how an attempt ended. If the store refuses the result of a
// success, it records a tombstone: the operation has succeeded.
func (c *Core) completeAlone(ctx context.Context, claimed store.Record, e protocol.Event) (protocol.Decision, store.Record, error) {
	d, now, err := c.prove(ctx, claimed, e)
	if !e.Step.Succeeds() || !errors.Is(err, errRefused) {
		return d, now, err
	}
	c.emit(ctx, EventTombstone, claimed, err)
	e.Outcome = encodeTombstone("the store refused the result")
	return c.prove(ctx, claimed, e)
}
