package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// errBusy says that somebody's open transaction holds the record.
var errBusy = errors.New("semel: busy")

// errRefused says that the store will not write this change, whoever asks.
var errRefused = errors.New("semel: refused by the store")

// errAfterLost says that a change that was refused may be in force all the same, by
// an earlier call that had no answer.
var errAfterLost = errors.New("after no answer")

// swap asks the store for one change, alone. A change asked for again is the same
// change, so a call without an answer is simply repeated: at once, then with
// growing pauses, until ctx ends or tries are used up (0: until ctx ends). After
// a call without an answer Busy is none either: what is in the way may be that
// very call.
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

// swapAgain goes on with the given try, when the one before it was lost.
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

// refusal is the error of an answer that says that the store will not write.
func refusal(answer store.SwapResult) (store.SwapResult, error) {
	if answer.Err != nil {
		return answer, fmt.Errorf("%w: %w", errRefused, answer.Err)
	}
	return answer, nil
}

// get reads what stands under id, with as much patience as swap: together with
// what others read, and alone when that has no answer.
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

// standing is the record that stands once change is in force.
func recordAfter(change store.Change, before store.Record) store.Record {
	applyTo(&change, &before)
	return before
}

// comesInForce makes of what stood before change what stands now.
func applyTo(change *store.Change, r *store.Record) {
	priority, input, outcome := r.Priority, r.Input, r.Outcome
	*r = change.To
	r.Since = 0
	if change.If != (store.Token{}) {
		r.Priority = priority // written at the create, and never changed
	}
	if r.Input == nil {
		r.Input = input
	}
	if r.Outcome == nil {
		r.Outcome = outcome
	}
}

// maxRounds bounds how often a decision is made anew because somebody else was
// quicker. Each round means that somebody else made progress.
const maxRounds = 64

// applyAlone drives one wish through: decide, try, look at what stands, decide again,
// until a change is in force or there is none to make. It returns what stands
// then. A change that is in force answers sayTry.
func (c *Core) applyAlone(ctx context.Context, current store.Record, e event, tries int) (d decision, now store.Record, err error) {
	now = current
	err = c.apply(ctx, &now, &e, &d, tries, false)
	return d, now, err
}

// apply is act, with what it is about handed on as it is, because it is large: at is
// what stands, before and after. Together lets changes go to the store together with
// others'.
func (c *Core) apply(ctx context.Context, at *store.Record, e *event, d *decision, tries int, together bool) error {
	for range maxRounds {
		if d.decide(at, e); d.answer != answerApply {
			return nil
		}
		if call, ok := e.request.(*Call); ok && e.step == stepClaim && d.step == stepDoubt {
			d.change.To.Outcome = c.crashed(call.op, *at)
		}
		answer, err := c.swapAny(ctx, &d.change, tries, together)
		switch {
		case err != nil:
			return err
		case answer.HasToken(d.change.To.Token):
			applyTo(&d.change, at)
			return nil
		case answer.Busy:
			return errBusy
		}
		*at = recordOf(answer)
	}
	*d = decision{answer: answerWait}
	return nil
}

// swapEither is swapTogether or swap.
func (c *Core) swapAny(ctx context.Context, change *store.Change, tries int, together bool) (store.SwapResult, error) {
	if together && c.batching.swaps != nil {
		return c.swapBatched(ctx, change, tries)
	}
	return c.swap(ctx, change, tries)
}

// certify drives a change that is a proof: it is asked, alone, until the store
// says that it is in force or that something else stands, as long as ctx lasts.
func (c *Core) prove(ctx context.Context, current store.Record, e event) (d decision, now store.Record, err error) {
	err = retryBusy(ctx, func() error {
		d, now, err = c.applyAlone(ctx, current, e, 0)
		return err
	})
	return d, now, err
}

// untilFree asks again while somebody's open transaction holds the record, as
// long as ctx lasts.
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

// endAmong is end, together with the changes of others. What that does not settle is
// asked for alone, in the time that is left. What is large is handed on as it is: at
// is what was claimed, and then what stands.
func (c *Core) complete(ctx context.Context, claimed func() store.Record, at *store.Record, e *event, d *decision) error {
	if c.inProcess != nil { // which takes no time
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

// end records how an attempt ended. A success whose result the store refuses,
// although it promised to keep as much, is a success all the same.
func (c *Core) completeAlone(ctx context.Context, claimed store.Record, e event) (decision, store.Record, error) {
	d, now, err := c.prove(ctx, claimed, e)
	if e.step != stepSucceed || !errors.Is(err, errRefused) {
		return d, now, err
	}
	c.emit(ctx, EventTombstone, claimed, err)
	e.outcome = encodeTombstone("the store refused the result")
	return c.prove(ctx, claimed, e)
}
