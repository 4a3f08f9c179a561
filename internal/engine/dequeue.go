package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Dequeue claims at most limit due calls of op for a worker: those of the highest
// priority first, and of these the ones that have been due for longest.
func Dequeue(ctx context.Context, c *Core, op Declared, limit int) ([]*Attempt, error) {
	attempts, err := dequeueCalls(ctx, c, op.declared(), limit)
	return attempts, callerr.Seal(err)
}

func dequeueCalls(ctx context.Context, c *Core, d *operation, limit int) ([]*Attempt, error) {
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
	q := &dequeueCall{c: c, op: d, times: c.options.times(d), policy: d.policy.kind.OrDefault()}
	claimed, err := q.claim(ctx, min(limit, c.caps.MaxBatch))
	if err != nil {
		return nil, fmt.Errorf("%w: dequeue %s: %w", callerr.ErrUnavailable, d.name, err)
	}
	return q.attempts(ctx, claimed)
}

// dequeueCall is one call of Dequeue.
type dequeueCall struct {
	c      *Core
	op     *operation
	times  Times
	policy protocol.Policy
	sent   time.Time // start of the leases
}

// attempts makes attempts of the claimed records, unless ctx or the engine has
// ended.
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
		// Nothing renews the leases yet, so this must be quick.
		looking, done := context.WithTimeout(bounded, q.times.Heartbeat)
		defer done()
		checkCancelRequests(looking, q.c, again)
	}
	if len(attempts) == 0 {
		return nil, ctx.Err()
	}
	return attempts, nil
}

// claim claims with a Dequeuer, or by a scan and a Swap.
func (q *dequeueCall) claim(ctx context.Context, limit int) ([]store.Record, error) {
	if limit < 1 {
		return nil, nil
	}
	dequeuer, ok := q.c.store.(store.Dequeuer)
	if ok {
		q.releaseOrphaned(ctx, dequeuer)
	}
	// The reply must be read even if ctx ends.
	bounded, cancel := q.c.bounded(ctx)
	defer cancel()
	q.sent = clock.Now()
	if ok {
		return q.callDequeuer(bounded, dequeuer, store.Dequeue{
			Operation: q.op.name, Limit: limit, Owner: protocol.MarkOwner(newOwner(), q.policy), Lease: q.times.firstLease(),
		})
	}
	return q.scan(bounded, limit)
}

// callDequeuer calls a Dequeuer, and repeats the call if its reply is lost: the store
// then returns the claims of the lost call. callDequeuer remembers that a lost call may
// still make more.
func (q *dequeueCall) callDequeuer(ctx context.Context, dequeuer store.Dequeuer, d store.Dequeue) ([]store.Record, error) {
	for try := 1; ; try++ {
		claimed, err := dequeuer.Dequeue(ctx, d)
		over := err == nil || try == swapTries || ctx.Err() != nil
		if over && (err != nil || try > 1) {
			q.rememberOrphaned(d.Owner, claimed)
		}
		if err != nil {
			q.c.emit(ctx, event.StoreError, store.Record{Operation: q.op.name}, err)
		}
		if over {
			return claimed, err
		}
	}
}

// scan reads due records and claims them by a Swap. Other workers may be faster.
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
		changes[i] = protocol.Next(r, protocol.ClaimQueued(r, protocol.MarkOwner(newOwner(), q.policy), q.policy, q.times.firstLease())).Change
	}
	answers, err := q.c.store.Swap(ctx, changes)
	if err != nil { // repeating the changes is safe
		answers, err = q.c.store.Swap(ctx, changes)
	}
	if err != nil {
		for i, r := range waiting {
			q.c.voidClaim(ctx, q.op, changes[i], r, protocol.Event{Policy: q.policy, Identity: r})
		}
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

func (q *dequeueCall) attempt(ctx context.Context, r *store.Record) *Attempt {
	found := *r // a copy, because an attempt that runs for hours must not keep the whole batch in memory
	a := &Attempt{
		c: q.c, call: callOf(q.op, *r), times: q.c.options.timesOf(q.op, r.ID), policy: q.policy, token: r.Token, begun: q.sent,
		found: &found,
	}
	a.start(a.trace(traceOf(ctx, q.c, r)), q.sent, false)
	q.c.emit(ctx, event.Claimed, *r, nil)
	return a
}

// release releases a claimed record that will not run. A caller that releases many
// limits ctx for all of them.
func (q *dequeueCall) release(ctx context.Context, r store.Record, why error) {
	_, _, _ = q.c.writer.completeAlone(ctx, r, q.c.releaseEvent(q.op, q.policy, r, why)) // after a lost reply the lease decides
}

// callOf returns the call of a record, as far as the record describes it.
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

// Input returns the input of the attempt's call.
func (o *Operation[In]) Input(a *Attempt) (In, error) {
	var in In
	if a.call.op != &o.def {
		return in, callerr.Invalid("Attempt", "is of operation "+a.call.op.name+", not of this "+o.def.name)
	}
	if in, ok := o.value(a.call.input); ok {
		return in, nil
	}
	if err := json.Unmarshal(a.Record().Input, &in); err != nil {
		return in, &callerr.InputError{Operation: o.def.name, Err: err}
	}
	return in, nil
}

// rememberOrphaned remembers an owner whose claims may be applied, or may still be
// applied, and the claims that are known and run.
func (q *dequeueCall) rememberOrphaned(owner uint64, known []store.Record) {
	lost := orphanedClaim{
		operation: q.op.name, owner: owner, until: clock.Now().Add(q.times.Lease + q.c.options.RecordTimeout),
		run: make(map[store.ID]uint32, len(known)), pause: q.times.Lease / 32,
	}
	for _, r := range known {
		lost.run[r.ID] = r.Attempt
	}
	q.c.orphaned.add(lost)
}

// releaseOrphaned releases the claims of orphaned owners.
func (q *dequeueCall) releaseOrphaned(ctx context.Context, dequeuer store.Dequeuer) {
	ctx, cancel := q.c.bounded(ctx)
	defer cancel()
	for _, lost := range q.c.orphaned.due(q.op.name) {
		claimed, err := dequeuer.Dequeue(ctx, store.Dequeue{
			Operation: q.op.name, Limit: q.c.caps.MaxBatch, Owner: lost.owner, Reread: true,
		})
		if err != nil {
			return
		}
		q.c.orphaned.backOff(lost.owner)
		for _, r := range claimed {
			if lost.run[r.ID] != r.Attempt {
				q.release(ctx, r, callerr.ErrUnavailable)
			}
		}
	}
}

// CheckOperation returns why every call of op over this engine would be refused, as a
// *FieldError, or nil.
func CheckOperation(c *Core, op Declared) error {
	d := op.declared()
	if d.err != nil {
		return d.err
	}
	return c.checkOperation(d)
}

// CheckWorker returns why workers of this engine cannot run op, as a *FieldError,
// or nil.
func CheckWorker(c *Core, op Declared, inTx bool) error {
	d := op.declared()
	if err := CheckOperation(c, op); err != nil {
		return err
	}
	switch {
	case c.operations[d.name] == nil:
		return callerr.Invalid("Operations", "of the engine are without "+d.name)
	case d.retry == nil:
		return callerr.Invalid("Retry", "is not set for "+d.name+": callers own its keys and retry themselves")
	case d.retry.Redelivered:
		return callerr.Invalid("Redelivered", "is set for "+d.name+": a broker redelivers its calls, and no worker runs them")
	case inTx && !d.policy.kind.Transactional():
		return callerr.Invalid("Policy", "of "+d.name+" must be Atomic: its functions share the record's transaction")
	}
	return nil
}
