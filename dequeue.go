package semel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Dequeue claims at most limit calls of op that wait and are due, for a worker:
// those of the highest priority first, and of these the ones that have been due
// for longest. They are attempts as those of [Begin] are, but nothing renews
// their leases: call [Core.RenewLeases] for all of them, more often than op's
// [Core.Times] say a heartbeat is due. Call [Attempt.Prepare] before the function of
// each, and end each. Their contexts end with ctx. One that follows others is
// looked at for whether its key was cancelled.
//
// An error says that the store did not answer, or that ctx had ended; what may have
// been claimed then is given back, and is no crash. Each of its askings of the store
// takes at most RecordTimeout, whatever becomes of ctx.
//
// Of a store that is no [store.Dequeuer] it claims what has been due for longest;
// the priority counts only among the hundred of them that it looks at, or limit if
// that is more.
func (c *Core) Dequeue(ctx context.Context, op Declared, limit int) ([]*Attempt, error) {
	attempts, err := c.dequeue(ctx, op.declared(), limit)
	return attempts, seal(err)
}

func (c *Core) dequeue(ctx context.Context, d *operation, limit int) ([]*Attempt, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := c.options.outlived(d); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	q := &dequeueCall{c: c, op: d, times: c.options.times(d), policy: d.policy.orHold()}
	claimed, err := q.claim(ctx, min(limit, c.caps.MaxBatch))
	if err != nil {
		return nil, fmt.Errorf("%w: dequeue %s: %w", ErrUnavailable, d.name, err)
	}
	return q.attempts(ctx, claimed)
}

// dequeuing is one asking for waiting calls.
type dequeueCall struct {
	c      *Core
	op     *operation
	times  times
	policy policyKind
	sent   instant // from when the leases count
}

// attempts makes attempts of what was claimed, unless nobody is to run them any
// more.
func (q *dequeueCall) attempts(ctx context.Context, claimed []store.Record) ([]*Attempt, error) {
	attempts := make([]*Attempt, 0, len(claimed))
	var again []*Attempt
	bounded, cancel := q.c.bounded(ctx)
	defer cancel()
	for i := range claimed {
		r, why := &claimed[i], ctx.Err()
		if why == nil {
			why = q.c.enter()
		}
		if why != nil {
			q.release(bounded, *r, why)
			continue
		}
		a := q.attempt(ctx, r)
		attempts = append(attempts, a)
		if r.Attempt > 1 {
			again = append(again, a)
		}
	}
	if len(again) > 0 {
		// Nobody beats for them yet, so this must not take long.
		looking, done := context.WithTimeout(bounded, q.times.beat)
		defer done()
		q.c.checkCancelRequests(looking, again)
	}
	if len(attempts) == 0 {
		return nil, ctx.Err()
	}
	return attempts, nil
}

// claim asks the store, and where that is not a Dequeuer, looks and claims.
func (q *dequeueCall) claim(ctx context.Context, limit int) ([]store.Record, error) {
	if limit < 1 {
		return nil, nil
	}
	dequeuer, ok := q.c.store.(store.Dequeuer)
	if ok {
		q.releaseOrphaned(ctx, dequeuer)
	}
	// What is claimed is to be heard of, also by one who will not run it any more.
	bounded, cancel := q.c.bounded(ctx)
	defer cancel()
	q.sent = q.c.now()
	if ok {
		return q.callDequeuer(bounded, dequeuer, store.Dequeue{
			Operation: q.op.name, Limit: limit, Owner: ownerOf(newOwner(), q.policy), Lease: q.times.firstLease(),
		})
	}
	return q.scan(bounded, limit)
}

// ask asks a Dequeuer. After a call without an answer it asks for what that one
// has claimed, and remembers that more may yet come of it.
func (q *dequeueCall) callDequeuer(ctx context.Context, dequeuer store.Dequeuer, d store.Dequeue) ([]store.Record, error) {
	for try := 1; ; try++ {
		claimed, err := dequeuer.Dequeue(ctx, d)
		over := err == nil || try == askTries || ctx.Err() != nil
		if over && (err != nil || d.Again) {
			q.rememberOrphaned(d.Owner, claimed)
		}
		if err != nil {
			q.c.emit(ctx, EventStoreError, store.Record{Operation: q.op.name}, err)
		}
		if over {
			return claimed, err
		}
		d.Again = true
	}
}

// scan claims what waits by a Swap of what a look has found. Others may have been
// quicker.
func (q *dequeueCall) scan(ctx context.Context, limit int) ([]store.Record, error) {
	waiting, err := q.c.store.Scan(ctx, store.Query{
		State: store.Pending, Operation: q.op.name, Due: true, Limit: max(limit, store.DefaultLimit),
	})
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	slices.SortStableFunc(waiting, func(a, b store.Record) int { return cmp.Compare(b.Priority, a.Priority) })
	waiting = waiting[:min(limit, len(waiting))]
	changes := make([]store.Change, len(waiting))
	for i, r := range waiting {
		changes[i] = next(r, claimOf(r, q.policy, q.times.firstLease())).change
	}
	answers, err := q.c.store.Swap(ctx, changes)
	if err != nil { // asked again it is the same
		answers, err = q.c.store.Swap(ctx, changes)
	}
	if err != nil {
		q.releaseUnanswered(ctx, waiting, changes)
		return nil, err
	}
	var claimed []store.Record
	for i, r := range waiting {
		if answers[i].Applied(changes[i]) {
			claimed = append(claimed, recordAfter(changes[i], r))
		}
	}
	return claimed, nil
}

// claimOf is the wish to run what stands, by one who knows no more of it.
func claimOf(current store.Record, policy policyKind, lease time.Duration) event {
	identity := current
	identity.Expire = 0
	identity.Input, identity.Outcome = nil, nil // kept as they stand
	return event{step: stepClaim, owner: ownerOf(newOwner(), policy), policy: policy, identity: identity, lease: lease}
}

func (q *dequeueCall) attempt(ctx context.Context, r *store.Record) *Attempt {
	a := &Attempt{
		c: q.c, call: callOf(q.op, *r), times: q.c.options.timesOf(q.op, r.ID), policy: q.policy, token: r.Token, begun: q.sent,
		found: new(*r), // and none of its neighbours: one may run for hours
	}
	a.start(ctx, q.sent, false)
	q.c.emit(ctx, EventClaimed, *r, nil)
	return a
}

// giveBack releases what was claimed and will not be run. Who gives back much gives
// ctx a bound for all of it.
func (q *dequeueCall) release(ctx context.Context, r store.Record, why error) {
	_, _, _ = q.c.completeAlone(ctx, r, q.releaseEvent(r, why)) // without an answer the lease decides
}

// release is the end of a claim that nothing was run for, and that is not to count.
func (q *dequeueCall) releaseEvent(r store.Record, why error) event {
	return event{
		step: stepRelease, token: r.Token, policy: q.policy, proven: true, expire: q.c.options.timesOf(q.op, r.ID).retention,
		outcome: q.c.interruption(q.op, r, r.Attempt, why),
	}
}

// callOf is the call that a record is of, as far as the record tells.
func callOf(op *operation, r store.Record) Call {
	c := Call{op: op, scope: Scope{text: r.Scope}, key: r.Key, id: r.ID, found: true}
	copy(c.digest[:], r.Fingerprint)
	switch len(r.Fingerprint) {
	case inputSize:
	case boundSize:
		c.bound = true
	default:
		c.extras = &callExtras{stored: r.Fingerprint}
	}
	return c
}

// Input returns what the attempt's call was enqueued with, or asked for with.
func (o *Operation[In]) Input(a *Attempt) (In, error) {
	var in In
	if a.call.op != &o.def {
		return in, invalid("Attempt", "is of operation "+a.call.op.name+", not of this "+o.def.name)
	}
	if in, ok := o.value(a.call.input); ok {
		return in, nil
	}
	if err := json.Unmarshal(a.Record().Input, &in); err != nil {
		return in, &inputError{operation: o.def.name, err: err}
	}
	return in, nil
}

// inputError says that what a call was enqueued with cannot be read any more.
type inputError struct {
	operation string
	err       error
}

func (e *inputError) Error() string { return "read the input of " + e.operation + ": " + e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }
