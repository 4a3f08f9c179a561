package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// claimer is a call that tries to become the leader or to get an answer.
type claimer struct {
	c        *Core
	call     *Call         // of attempt
	deadline time.Time     // end of the wait for a leader
	waited   time.Duration // for a leader, so far
	own      inflightCall  // of attempt, if it is the first caller
	attempt  Attempt       // the attempt if the claim succeeds; times, policy and inflight are set before

	successor *successor // only for operations with a Generation
}

func (c *Core) newClaimer(call *Call, policy protocol.Policy) *claimer {
	q := &claimer{c: c}
	a := &q.attempt
	a.c, a.call, a.policy = c, *call, policy
	if call.issued != nil {
		a.call = call.Issued() // a copy that shares nothing that readIssue changes
	}
	a.times = c.options.timesOf(call.op, call.id)
	q.call = &a.call
	a.begun = clock.Now()
	q.deadline = a.begun.Add(a.times.Wait)
	return q
}

// admit checks a valid call against the engine and counts it as running. Policy
// Atomic means that the call opens a transaction. An admitted call must call leave
// at its end.
func (c *Core) admit(ctx context.Context, call *Call, policy protocol.Policy) error {
	if err := c.checkTransactional(policy); err != nil {
		return err
	}
	if err := c.notWithinTx(ctx, policy.Transactional()); err != nil {
		return err
	}
	if err := c.checkOperation(call.op); err != nil {
		return err
	}
	if err := callerGone(ctx); err != nil {
		return err
	}
	return c.enter()
}

// begin claims the key, or returns its outcome or an error. Exactly one of the
// three is not nil.
func (c *Core) begin(ctx context.Context, call *Call) (*Attempt, *Outcome, error) {
	if err := call.valid(); err != nil {
		return nil, nil, err
	}
	if err := call.notByGeneration(); err != nil {
		return nil, nil, err
	}
	policy := call.op.policy.kind.OrDefault()
	if err := c.admit(ctx, call, policy); err != nil {
		return nil, nil, err
	}
	if out, known, err := c.fromCache(ctx, call); known {
		c.leave()
		return nil, out, err
	}
	q := c.newClaimer(call, policy)
	defer q.releaseWaiter(ctx)
	leads := false
	defer func() {
		if !leads { // also on a panic in a probe
			c.leave()
		}
	}()
	var a *Attempt
	out, err := q.lead(ctx)
	if out == nil && err == nil {
		a, out, err = q.claim(ctx)
	}
	if a == nil {
		return nil, out, err
	}
	leads = true                                           // the end of the attempt calls leave
	if out, err := a.Prepare(); out != nil || err != nil { //nolint:contextcheck // an attempt has its own context
		return nil, out, err
	}
	return a, nil, nil
}

// lead lets only one caller of each key in this process use the store; the others
// are its followers. It returns nothing if the caller is to use the store.
func (q *claimer) lead(ctx context.Context) (*Outcome, error) {
	for {
		f, first := q.c.inflight.acquire(q.call, &q.own, q.attempt.begun)
		switch {
		case first:
			q.attempt.inflight = f
			return nil, nil
		case q.attempt.policy.Probes(): // the evidence may be there before the leader has an outcome
			return nil, nil
		}
		if out, err := q.follow(ctx, f); out != nil || err != nil {
			return out, err
		}
		q.attempt.begun = clock.Now()
	}
}

// claim uses the store as the first caller of the key, and hands the answer to its
// followers.
func (q *claimer) claim(ctx context.Context) (*Attempt, *Outcome, error) {
	a, landed := &q.attempt, false
	defer func() {
		if !landed && a.inflight != nil { // a panic in a probe
			q.c.inflight.finish(a.call.id, a.inflight, &store.Record{}, callerr.ErrAbandoned)
		}
	}()
	var current store.Record
	claimed, err := q.decide(ctx, &current)
	landed = true
	if claimed {
		a.token = current.Token
		if a.inflight != nil {
			q.c.inflight.markRunning(a.inflight, true)
		}
		a.start(a.trace(ctx), a.begun, true)
		return a, nil, nil
	}
	if a.inflight != nil {
		q.c.inflight.finish(a.call.id, a.inflight, &current, errForFollowers(ctx, err))
	}
	if err != nil {
		return nil, nil, err
	}
	out, err := q.c.replay(ctx, current)
	return nil, out, err
}

// decide claims the key, or reads the current record. If it returns neither a claim
// nor an error, the record is final.
func (q *claimer) decide(ctx context.Context, current *store.Record) (claimed bool, err error) {
	asked := q.c.cache.Now()
	if err = q.readFirst(ctx, current); err != nil {
		return false, err
	}
	q.call.readIssue(current)
	var e protocol.Event
	q.claimEvent(&e)
	var d protocol.Decision
	for ; ; q.attempt.begun = clock.Now() {
		err := q.c.writer.claim(ctx, current, &e, &d)
		switch {
		case err == nil:
		case errors.Is(err, callerr.ErrBusy):
			d.Answer = protocol.Wait
		case errors.Is(err, store.ErrNoPartition):
			return false, q.c.noPartitionError(q.call, err)
		case isNotSent(err), errors.Is(err, callerr.ErrRefused) && !errors.Is(err, callerr.ErrAfterLost):
			return false, fmt.Errorf("%w: claim: %w", callerr.ErrUnavailable, err)
		default:
			if d.Starts() {
				q.abandonClaim(ctx, d.Change, *current, err)
			}
			return false, fmt.Errorf("%w: claim: %w", callerr.ErrUnavailable, err)
		}
		switch d.Answer {
		case protocol.Apply:
			q.c.readHint.observe(false)
			if d.Change.If != (store.Token{}) {
				found := *current
				q.attempt.found = &found
			}
			return q.applied(ctx, d.Step, current)
		case protocol.Replay:
			q.c.readHint.observe(true)
			q.cacheFinal(current, asked)
			return false, nil
		case protocol.Probe:
			*current, err = q.look(ctx, *current, &e)
		case protocol.Wait:
			*current, err = q.wait(ctx, *current)
			e.Probed = false
		default:
			return false, q.c.refusal(ctx, q.call, d.Answer, *current)
		}
		if err != nil {
			return false, err
		}
	}
}

// errForFollowers returns the error that the followers of a first caller receive.
// If that caller hung up, its error says nothing about the store.
func errForFollowers(ctx context.Context, err error) error {
	if callerGone(ctx) != nil && errors.Is(err, callerr.ErrUnavailable) {
		return callerr.ErrAbandoned
	}
	return err
}

// acquireWaiter makes the caller a waiter, if its operation has a Wait and there
// are fewer than MaxWaiters.
func (q *claimer) acquireWaiter() bool {
	if q.attempt.times.Wait > 0 && !q.attempt.waits {
		q.attempt.waits = q.c.inflight.waiting.Add(1) <= int64(q.c.options.MaxWaiters)
		if !q.attempt.waits {
			q.c.inflight.waiting.Add(-1)
		}
	}
	return q.attempt.waits
}

func (q *claimer) releaseWaiter(ctx context.Context) {
	if !q.attempt.waits {
		return
	}
	q.c.inflight.waiting.Add(-1)
	q.attempt.waits = false
	q.c.observe(ctx, event.Event{Kind: event.Waited, Operation: q.call.op.name, ID: q.call.id, Elapsed: q.waited})
}

// cacheFinal caches a final record. asked is the time before the record was read.
func (q *claimer) cacheFinal(current *store.Record, asked time.Time) {
	if q.call.op.generation == 0 { // with a Generation, the record has another ID
		q.c.cache.Put(current, asked)
	}
}

// fromCache answers the call from the cache, if it has a final record.
func (c *Core) fromCache(ctx context.Context, call *Call) (out *Outcome, known bool, err error) {
	current, kept := c.cache.Get(call.id)
	if kept == nil || call.op.generation != 0 {
		return nil, false, nil
	}
	out, err = c.answer(ctx, call, current)
	return out, true, err
}

func (q *claimer) claimEvent(e *protocol.Event) {
	e.Step, e.Owner, e.Policy = protocol.StepClaim, protocol.MarkOwner(newOwner(), q.attempt.policy), q.attempt.policy
	e.Lease = q.attempt.times.firstLease()
	q.call.requestTo(e)
}

// applied reports whether the applied change made the caller the leader.
func (q *claimer) applied(ctx context.Context, s protocol.Step, now *store.Record) (bool, error) {
	switch s {
	case protocol.StepClaim:
		q.c.emit(ctx, event.Claimed, *now, nil)
		return true, nil
	case protocol.StepTakeover:
		q.c.emit(ctx, event.Takeover, *now, nil)
		return true, nil
	default:
		q.c.emit(ctx, event.InDoubt, *now, nil)
		return false, callerr.ErrInDoubt
	}
}

// readFirst reads the record before the claim, if that is worth a round trip: the
// time in the key says that the record may be gone, the record must exist, recent
// calls met final records, or the record may be in one of two generations. Otherwise most keys are new, and
// the claim itself finds the record.
func (q *claimer) readFirst(ctx context.Context, current *store.Record) (err error) {
	expired := q.c.keyExpired(q.call)
	if !expired && q.call.op.generation == 0 && q.call.issued == nil && !q.c.readHint.readFirst() {
		return nil
	}
	*current, err = q.read(ctx)
	q.attempt.begun = clock.Now()
	switch {
	case err != nil:
		return err
	case expired && protocol.AnswerTo(current, protocol.SameRequest) == protocol.Lost:
		return callerr.ErrKeyExpired
	case q.call.issued != nil && protocol.AnswerTo(current, protocol.SameRequest) == protocol.Lost:
		return callerr.ErrTokenUnknown
	default:
		return nil
	}
}

// keyExpired reports whether the time in the key is older than the retention, or in
// the future.
func (c *Core) keyExpired(call *Call) bool {
	if call.extras == nil || call.extras.keyTime.IsZero() {
		return false
	}
	age := c.options.Clock().Sub(call.extras.keyTime)
	return age > c.options.times(call.op).Retention || age < -call.op.skew
}

// noPartitionError returns the error for a key whose time has no partition. A key
// that is too old, or too far in the future, has expired. Otherwise the partition
// was not created in time or was dropped too early: nothing was run, and a retry
// may succeed. The time of a generation is not the key's.
func (c *Core) noPartitionError(call *Call, err error) error {
	if call.op.generation == 0 && c.keyExpired(call) {
		return fmt.Errorf("%w: %w", callerr.ErrKeyExpired, err)
	}
	return fmt.Errorf("%w: %w", callerr.ErrUnavailable, err)
}

// checkKeyAge returns ErrKeyExpired if there is no record and the key is too old to
// be new.
func (c *Core) checkKeyAge(ctx context.Context, call *Call) error {
	if err := call.notByGeneration(); err != nil || !c.keyExpired(call) {
		return err
	}
	var current store.Record
	return c.newClaimer(call, protocol.Unset).readFirst(ctx, &current)
}
