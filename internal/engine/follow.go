package engine

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// follow waits for another caller of the same key and returns its answer. It
// returns nothing if that caller has no answer for this one, which then tries to
// claim the key itself.
func (q *claimer) follow(ctx context.Context, f *inflightCall) (*Outcome, error) {
	ctx, end := waitContext(ctx)
	defer end()
	if err := q.decided(ctx, f); err != nil {
		return nil, err
	}
	if running, holds := f.isRunning(); running {
		switch {
		case q.call.compareFingerprint(f.call.fingerprint()) == protocol.SameRequest:
		case holds:
			return nil, q.c.refusal(ctx, q.call, protocol.Mismatch, f.call.identity())
		default:
			if out, err := q.recorded(ctx); out != nil || err != nil {
				return out, err
			}
		}
		if err := q.attach(ctx, f, f.reached(phaseFinished)); err != nil {
			return nil, err
		}
	}
	<-f.reached(phaseFinished)
	current, err := f.result()
	if errors.Is(err, callerr.ErrUnavailable) {
		return nil, err
	}
	if out, refused := q.answerFrom(ctx, current); out != nil || refused != nil {
		return out, refused
	}
	if errors.Is(err, callerr.ErrInProgress) && clock.Until(q.deadline) <= 0 {
		return nil, err
	}
	return nil, nil
}

// recorded answers from the current record. It returns nothing if that has no
// answer for the call.
func (q *claimer) recorded(ctx context.Context) (*Outcome, error) {
	current, err := q.read(ctx)
	if err != nil {
		return nil, err
	}
	return q.answerFrom(ctx, current)
}

// answerFrom answers from a record that is final, in doubt, or of another request.
func (q *claimer) answerFrom(ctx context.Context, r store.Record) (*Outcome, error) {
	switch d := protocol.Next(r, protocol.Event{Step: protocol.StepClaim, Policy: q.attempt.policy, Request: q.call}); d.Answer {
	case protocol.Replay:
		return q.c.replay(ctx, r)
	case protocol.Mismatch, protocol.Newer, protocol.InDoubt:
		return nil, q.c.refusal(ctx, q.call, d.Answer, r)
	default:
		return nil, nil
	}
}

// decided waits until it is known whether the operation runs: for one round trip to
// the store, or as a waiter.
func (q *claimer) decided(ctx context.Context, f *inflightCall) error {
	known := f.reached(phaseDecided)
	select {
	case <-known:
		return nil
	default:
	}
	select {
	case <-known:
		return nil
	case <-f.reached(phaseWaiting):
		return q.attach(ctx, f, known)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach waits for a call of this process. Waiting costs a goroutine only.
func (q *claimer) attach(ctx context.Context, f *inflightCall, over <-chan struct{}) error {
	if !q.acquireWaiter() {
		return &callerr.WaitError{After: protocol.RetryAfter(store.Record{Since: clock.Since(f.begun)})}
	}
	begun := clock.Now()
	err := await(ctx, over, clock.Until(q.deadline))
	q.waited += clock.Since(begun)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &callerr.WaitError{After: protocol.RetryAfter(store.Record{Since: clock.Since(f.begun)})}
	}
	return err
}

// maxPoll is the longest time between two reads of a record by a caller that waits. A store
// that watches reports changes earlier, but not the end of a lease.
const maxPoll = time.Second

// wait waits for a change of a record that another process is running, or for some time, and
// returns the record it then reads.
func (q *claimer) wait(ctx context.Context, current store.Record) (store.Record, error) {
	left := clock.Until(q.deadline)
	if left <= 0 || !q.acquireWaiter() {
		return current, &callerr.WaitError{After: protocol.RetryAfter(current)}
	}
	if q.attempt.inflight != nil {
		q.c.inflight.wait(q.attempt.inflight, current)
	}
	waited := q.attempt.times.Wait - left
	poll := min(max(current.Since/4, waited/4, 20*time.Millisecond), maxPoll)
	if q.c.watcher != nil {
		poll = maxPoll
	}
	waiting, done := waitContext(ctx)
	defer done()
	begun := clock.Now()
	err := q.c.awaitChange(waiting, current, min(jitter(poll), left))
	q.waited += clock.Since(begun)
	if err != nil {
		return current, err
	}
	return q.read(ctx)
}

// awaitChange pauses, for less than d if the store reports a change of the record.
func (c *Core) awaitChange(ctx context.Context, current store.Record, d time.Duration) error {
	if c.watcher == nil {
		return clock.Sleep(ctx, d)
	}
	watching, end := context.WithTimeout(ctx, d)
	defer end()
	if c.watcher.Watch(watching, current.ID, current.Token) != nil {
		<-watching.Done()
	}
	return ctx.Err()
}

// successor is the record of a key in the next generation.
type successor struct {
	id         store.ID
	current    store.Record
	generation int64 // number of the generation before it, which the call's own ID is of
}

// read reads the current record of the call. For an operation with a Generation it
// reads both, and returns the final one if there is one, else the record of this
// generation.
func (q *claimer) read(ctx context.Context) (store.Record, error) {
	op := q.call.op
	if op.generation == 0 {
		return q.c.reader.get(ctx, q.call.id)
	}
	n, ids := op.generationAt(q.c.options.Clock(), q.call.scope.text, q.call.key)
	both, err := q.c.reader.getAll(ctx, clock.Now(), ids[:]...)
	if err != nil {
		return store.Record{}, err
	}
	q.call.id, q.successor = ids[0], &successor{ids[1], both[1], n}
	if both[1].State.Final() {
		return both[1], nil
	}
	return both[0], nil
}
