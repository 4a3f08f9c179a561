package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// writer writes records. It asks the protocol what an event does to the current
// record, writes that change, and decides again if another write was first.
//
//   - claim joins a batch, and is tried three times: the key can be tried again.
//   - complete joins a batch, and is then repeated alone until the store answers.
//   - prove is repeated alone until the store answers: its success is proof.
//   - settle is written alone, and is tried three times.
type writer struct {
	emitter
	reader

	hint *readHint
	// crashed returns what a caller stores that records the doubt about a crashed
	// attempt.
	crashed func(op *operation, current store.Record) []byte
}

// maxRounds limits how often a decision is repeated because another write was
// applied first. Each round means that another caller made progress.
const maxRounds = 64

// claim applies an event in a batch. *at is the current record, before and after.
// They are pointers because the values are large. d.Answer is protocol.Apply if a
// change was applied.
func (w *writer) claim(ctx context.Context, at *store.Record, e *protocol.Event, d *protocol.Decision) error {
	return w.apply(ctx, at, e, d, swapTries, true)
}

// settle applies an event alone, and returns the decision and the current record.
func (w *writer) settle(ctx context.Context, current store.Record, e protocol.Event) (d protocol.Decision, now store.Record, err error) {
	now = current
	err = w.apply(ctx, &now, &e, &d, swapTries, false)
	return d, now, err
}

// apply decides, writes, and decides again on the record that it finds, until a
// change is applied or none is to be made. If batched is set, the change may join a
// batch.
func (w *writer) apply(ctx context.Context, at *store.Record, e *protocol.Event, d *protocol.Decision, tries int, batched bool) error {
	for range maxRounds {
		if d.Decide(at, e); d.Answer != protocol.Apply {
			return nil
		}
		if call, ok := e.Request.(*Call); ok && e.Step == protocol.StepClaim && d.Step == protocol.StepDoubt {
			d.Change.To.Outcome = w.crashed(call.op, *at)
		}
		var answer store.SwapResult
		var err error
		if batched {
			answer, err = w.swapBatched(ctx, &d.Change, tries)
		} else {
			answer, err = w.swap(ctx, &d.Change, tries)
		}
		switch {
		case err != nil:
			return err
		case answer.HasToken(d.Change.To.Token):
			*at = recordAfter(d.Change, *at)
			return nil
		case answer.Busy:
			return callerr.ErrBusy
		}
		*at = recordOf(answer)
	}
	*d = protocol.Decision{Answer: protocol.Wait}
	return nil
}

// prove applies an event as a proof: it repeats the change, outside of a batch,
// until the store says that the change is applied or superseded, or ctx ends.
func (w *writer) prove(ctx context.Context, current store.Record, e protocol.Event) (d protocol.Decision, now store.Record, err error) {
	err = retryBusy(ctx, func() error {
		now = current
		err = w.apply(ctx, &now, &e, &d, 0, false)
		return err
	})
	return d, now, err
}

// complete is completeAlone in a batch. If the batch has no answer, the change is
// repeated alone in the remaining time. *at is the claimed record, and then the
// current one.
func (w *writer) complete(ctx context.Context, claimed func() store.Record, at *store.Record, e *protocol.Event, d *protocol.Decision) error {
	if w.inProcess != nil { // takes no time
		if err := w.apply(ctx, at, e, d, 1, false); err == nil {
			return nil
		}
	}
	deadline := clock.Now().Add(w.timeout)
	if w.batching.swaps != nil {
		if err := w.apply(ctx, at, e, d, 1, true); err == nil {
			return nil
		}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var err error
	*d, *at, err = w.completeAlone(ctx, claimed(), *e)
	return err
}

// completeAlone records how an attempt ended. If the store refuses the result of a
// success, it records a tombstone: the operation has succeeded.
func (w *writer) completeAlone(ctx context.Context, claimed store.Record, e protocol.Event) (protocol.Decision, store.Record, error) {
	d, now, err := w.prove(ctx, claimed, e)
	if !e.Step.Succeeds() || !errors.Is(err, callerr.ErrRefused) {
		return d, now, err
	}
	w.emit(ctx, event.Tombstone, claimed, err)
	e.Outcome = codec.EncodeTombstone("the store refused the result")
	return w.prove(ctx, claimed, e)
}
