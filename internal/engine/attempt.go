package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/lazyctx"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Attempt is a successful claim: the right to run the operation now.
type Attempt struct {
	c        *Core
	call     Call
	times    Times
	right    right
	token    store.Token   // the fencing token; a single transaction writes its number and owner
	found    *store.Record // the record that the attempt changes; nil: its claim, of a new record
	inflight *inflightCall // nil: the call has no followers in this process
	begun    time.Time     // right before the claim was sent: the lease counts from here

	ctx     context.Context //nolint:containedctx // of its function
	leased  attemptContext  // ctx, unless the attempt is a single transaction
	renewer leaseRenewer

	adapter Adapter // nil: the function's value is stored
	policy  protocol.Policy
	waits   bool // its caller is counted as a waiter
	// endTrace ends the attempt's part of a trace. Nil: there is none.
	endTrace func(event.Event)
	// lossless means that decoding the outcome gives the function's value.
	lossless  bool
	ended     atomic.Bool
	tx        attemptTx
	txOutcome atomic.Pointer[txEnd] // nil: no transaction of InTx has decided the attempt
}

// Outcome is how an operation ended.
type Outcome struct {
	// Record is the current record. Its Outcome is encoded: use Decode. Its bytes
	// may be shared with the store and must not be changed.
	Record store.Record
	// Replayed means that an earlier attempt, or another caller's, made the
	// outcome.
	Replayed bool

	lossless bool // decoding it gives the function's value
}

// Decode decodes the stored result into a pointer of the type that the operation
// returned. The error is [ErrResultUnavailable] if the operation succeeded but its
// result is not available.
func (o *Outcome) Decode(into any) error {
	return callerr.Seal(codec.DecodeResult(o.Record.Outcome, into))
}

// Failure returns the stored failure of a Failed record, as callers receive it, or
// nil for any other record.
func (o *Outcome) Failure() *callerr.Failure {
	if o.Record.State != store.Failed {
		return nil
	}
	return codec.DecodeFailure(o.Record.Outcome)
}

// start starts the attempt's context and the renewal of its lease. If alone is not
// set, RenewLeases renews the lease together with others.
func (a *Attempt) start(ctx context.Context, sent time.Time, alone bool) {
	a.right = (*leased)(a)
	a.leased.Init(ctx)
	a.leased.a, a.ctx = a, &a.leased
	a.renewer.a = a
	a.renewer.start(sent, alone)
}

// detached returns a context for work after the attempt's own context has ended.
func (a *Attempt) detached() context.Context { return (*detachedContext)(a) }

// cancel ends the attempt's context.
func (a *Attempt) cancel(cause error) { a.leased.Cancel(cause) }

// attemptContext is the context of an attempt. It ends when the lease is lost, or when
// the attempt has ended. It is a part of the attempt, which saves an allocation.
type attemptContext struct {
	lazyctx.Context

	a *Attempt
}

// Value returns the attempt and its call. It hides the transaction and the wait
// context of an outer operation.
func (l *attemptContext) Value(key any) any {
	switch key.(type) {
	case attemptKey:
		return l.a
	case callKey:
		return l.a.call
	case txKey, waitContextKey:
		return nil
	}
	return l.Context.Value(key)
}

// detachedContext has the values of the attempt's context and never ends. It is the
// attempt itself, which saves an allocation.
type detachedContext Attempt

// Deadline returns that there is none.
func (r *detachedContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil, because the context never ends.
func (r *detachedContext) Done() <-chan struct{} { return nil }

// Err returns nil.
func (r *detachedContext) Err() error { return nil }

// Value returns the value of the attempt's context.
func (r *detachedContext) Value(key any) any { return context.WithoutCancel(r.ctx).Value(key) }

// AttemptOf returns the attempt of ctx, inside [Do] and inside [DoTx] of a leased
// operation.
func AttemptOf(ctx context.Context) (*Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	return a, ok
}

// Context returns the context for the operation's function. It ends with the
// caller's context, and with the cause [ErrLeaseLost] when the lease is lost or max
// run is over. The context is a courtesy; the fence is the safety.
func (a *Attempt) Context() context.Context { return a.ctx }

// Number returns the number of the attempt, counted from 1.
func (a *Attempt) Number() uint32 { return a.token.Attempt }

// Token returns the fencing token, for receivers that compare it.
func (a *Attempt) Token() store.Token { return a.token }

// Call returns the attempt's call.
func (a *Attempt) Call() Call { return a.call }

// Record returns the claimed record. Its bytes must not be changed.
func (a *Attempt) Record() store.Record {
	if a.found != nil {
		return *a.found
	}
	r := a.call.identity() // for a new record the attempt keeps nothing beyond its call
	r.Token, r.Due = a.token, a.times.firstLease()
	return r
}

// Adapter lets an edge, such as HTTP, decide what [InTx] stores.
type Adapter interface {
	// Encode returns the value to store, given the value of InTx's function. It is
	// called inside the transaction; its error rolls back.
	Encode(v any) (any, error)
	// Undone is called before InTx returns, if the transaction was rolled back or
	// its outcome is unknown. The adapter must then forget the outcome that it
	// encoded.
	Undone()
	// Claims reports whether the answer that End receives claims that the operation
	// took place. Under policy [Atomic] such an answer must come from InTx: if InTx
	// was not called, the record is left in doubt, and if its transaction was
	// rolled back, the record is released. Claims is called after the operation's
	// function has returned.
	Claims() bool
}

// AdaptWith sets the adapter. Call it before other code gets the attempt's context.
func (a *Attempt) AdaptWith(with Adapter) { a.adapter = with }

// close frees what the attempt has used, after its end. current is the record then, and
// err what the caller receives.
func (a *Attempt) close(current *store.Record, err error) {
	a.traceEnd("", current, err)
	a.cancel(nil)
	if a.inflight != nil {
		a.c.inflight.finish(a.call.id, a.inflight, current, nil)
	}
	a.c.leave()
}

// txEnd is what is known after the transaction of an attempt has ended in a way
// that must be settled.
type txEnd struct {
	current store.Record
	err     error // instead of an outcome
	// superseded means that another attempt has changed the record: it has the
	// answer.
	superseded bool
}

// attemptTx has the state of the transactions of [InTx] in one attempt.
type attemptTx struct {
	running atomic.Bool // InTx is running
	tried   atomic.Bool // InTx was called
	open    atomic.Bool // its transaction has begun
}

// right is what entitles an attempt to end its record. It is the only difference
// between a leased attempt and one that is a single transaction.
type right interface {
	// event returns an event of the attempt without a step.
	event() protocol.Event
	// certificate returns the event that, once it is applied, proves that the
	// attempt's transaction was not committed and never will be.
	certificate() protocol.Event
	// ending describes the attempt's end before its cause is known.
	ending() protocol.Ending
	// rolledBack reports whether an error of the function proves that every effect
	// of the attempt was rolled back.
	rolledBack() bool
	// keep has e recorded later, after the store did not answer, and reports
	// whether it can.
	keep(e protocol.Event, why error) bool
}

// leased is the right of an attempt after its claim was committed.
type leased Attempt

func (l *leased) event() protocol.Event {
	return protocol.Event{Token: l.token, Policy: l.policy, Expire: l.times.Retention}
}

// certificate is a release: while it is applied, the claim's token is current, and
// the commit needs that token.
func (l *leased) certificate() protocol.Event {
	e := l.event()
	e.Step, e.Proven = protocol.StepRelease, true
	return e
}

func (l *leased) ending() protocol.Ending {
	return protocol.Ending{Policy: l.policy, Tainted: l.found != nil && l.found.Tainted}
}

// rolledBack reports true if every effect was in a transaction that did not commit,
// or that can no longer commit after the record has changed. Under policy Atomic
// the effect is in such a transaction. A function that never called InTx may have
// had an effect outside.
func (l *leased) rolledBack() bool { return l.policy.Transactional() && l.tx.tried.Load() }

// keep retries the event in the background, because the claim blocks the key until
// its lease expires.
func (l *leased) keep(e protocol.Event, why error) bool {
	a := (*Attempt)(l)
	a.c.unrecorded.keep(a.detached(), pendingEnd{record: a.Record(), event: e, renewer: &a.renewer}, why)
	return true
}

// exclusive is the right of an attempt that is a single transaction, which holds
// the exclusive right to the record until it ends.
type exclusive Attempt

func (x *exclusive) event() protocol.Event {
	e := protocol.Event{Owner: x.token.Owner, Policy: x.policy, Expire: x.times.Retention}
	x.call.requestTo(&e)
	return e
}

// certificate is a void: it replaces the record that the commit must replace.
func (x *exclusive) certificate() protocol.Event {
	e := x.event()
	e.Step, e.To, e.Owner = protocol.StepVoid, store.Pending, newOwner()
	return e
}

func (x *exclusive) ending() protocol.Ending {
	return protocol.Ending{Policy: x.policy, Inline: true, Tainted: protocol.Taint(x.found, x.policy)}
}

func (*exclusive) rolledBack() bool { return true }

// keep reports false: nothing blocks the key, and a retry of the call settles it.
func (*exclusive) keep(protocol.Event, error) bool { return false }
