package semel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// Attempt is a claim that its caller won: the right to run the operation now.
// End it exactly once, or Abandon it.
type Attempt struct {
	c        *Core
	call     Call
	times    times
	token    store.Token   // of the claim: the fencing token
	found    *store.Record // the record as it was claimed; nil: a new one of the call
	inflight *inflightCall // nil when its call does not speak for its key in this process
	begun    instant       // before the claim was asked for: from when its lease counts

	ctx     context.Context //nolint:containedctx // its own life
	lazy    lazyContext     // of ctx
	renewer leaseRenewer

	adapter Adapter // nil: what the function returned is stored
	policy  policyKind
	waits   bool // the one who asked for it is counted among those who wait
	// asReturned reports that decoding the outcome gives the value that the function returned.
	lossless  bool
	inTx      bool // runTx is under way; guarded by mu
	triedTx   bool // runTx was called; guarded by mu
	txOpen    bool // its transaction has begun; guarded by mu
	ended     atomic.Bool
	txOutcome atomic.Pointer[txOutcome] // nil: no transaction of the attempt's own has decided
	mu        sync.Mutex
}

// settlement is what an attempt's own transaction has decided.
type txOutcome struct {
	current store.Record
	err     error // instead of an outcome
}

// Outcome is how an operation ended: what every asker of its key is told.
type Outcome struct {
	// Record is what stands. Its Outcome is in Semel's own form: use Decode. Its bytes
	// may be the store's own, and are not to be written over.
	Record store.Record
	// Replayed says that an earlier attempt, or another caller's, made it.
	Replayed bool

	lossless bool // decoding it gives the value that the function of the attempt returned
}

// Decode reads the stored result into a pointer of the type that the operation
// returned. It is [ErrResultUnavailable] when the operation succeeded but the
// result cannot be given.
func (o *Outcome) Decode(into any) error { return seal(decodeResult(o.Record.Outcome, into)) }

// live gives the attempt its context and its heart, which beats alone or is
// renewed together with others.
func (a *Attempt) start(ctx context.Context, sent instant, alone bool) {
	a.lazy.parent, a.ctx = ctx, (*attemptContext)(a)
	a.renewer.a = a
	a.renewer.start(sent, alone)
}

// afterwards is a context for what is left to do, whatever becomes of the attempt's.
func (a *Attempt) detached() context.Context { return (*detachedContext)(a) }

// cancel ends the attempt's context.
func (a *Attempt) cancel(cause error) { a.lazy.cancel(cause) }

// lifetime is the context of an attempt, which ends when its lease is lost. It is the
// attempt itself, so that it needs no memory of its own.
type attemptContext Attempt

// Deadline returns that of who asked.
func (l *attemptContext) Deadline() (time.Time, bool) { return l.lazy.Deadline() }

// Done is closed when the lease is lost, or the attempt over.
func (l *attemptContext) Done() <-chan struct{} { return l.lazy.Done() }

// Err says whether it has ended.
func (l *attemptContext) Err() error { return l.lazy.Err() }

// Value knows the attempt and its call. What the context of an outer operation says of
// its transaction, and how long the caller waits, does not concern this operation.
func (l *attemptContext) Value(key any) any {
	switch key.(type) {
	case attemptKey:
		return (*Attempt)(l)
	case callKey:
		return l.call
	case txKey, waitContextKey:
		return nil
	}
	return l.lazy.Value(key)
}

// remainder is the context of what is left to do after an attempt's own, whatever
// becomes of that. It does not end.
type detachedContext Attempt

// Deadline returns that there is none.
func (r *detachedContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil: it does not end.
func (r *detachedContext) Done() <-chan struct{} { return nil }

// Err returns nil.
func (r *detachedContext) Err() error { return nil }

// Value returns what the attempt's context has, but for its end.
func (r *detachedContext) Value(key any) any { return context.WithoutCancel(r.ctx).Value(key) }

// AttemptOf returns the attempt that ctx belongs to, inside [Do] and [DoTx] of
// a leased operation. It is the attempt of the innermost operation: inside an operation
// that is a single transaction there is none, also when a leased one called it.
func AttemptOf(ctx context.Context) (*Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	return a, ok
}

// Context returns the context to run the operation with. It ends with the
// caller's, and with the cause [ErrLeaseLost] when the lease is lost or max run
// is over. That is politeness; the fence is the safety.
func (a *Attempt) Context() context.Context { return a.ctx }

// Number returns the number of the attempt, counted from 1.
func (a *Attempt) Number() uint32 { return a.token.Attempt }

// Token returns the fencing token, to hand to receivers that compare it.
func (a *Attempt) Token() store.Token { return a.token }

// Call returns the call that the attempt runs.
func (a *Attempt) Call() Call { return a.call }

// Record returns the record as it was claimed. Its bytes are not to be written over.
func (a *Attempt) Record() (r store.Record) {
	a.loadClaimed(&r)
	return r
}

// claimed makes r, which is empty, the record as it was claimed. Of a new one nothing
// is kept that the call does not say: most are, and their attempts stay small.
func (a *Attempt) loadClaimed(r *store.Record) {
	if a.found != nil {
		*r = *a.found
		return
	}
	a.call.identify(r)
	r.Token, r.Due = a.token, a.times.firstLease()
}

// tainted tells whether an earlier attempt may have had an effect.
func (a *Attempt) tainted() bool { return a.found != nil && a.found.Tainted }

// Adapter is what an attempt of [InTx] is run by, when that is more than a function.
type Adapter interface {
	// Encode says what is stored when InTx ends, given what its function returned. It
	// is called inside the transaction; its error rolls back.
	Encode(v any) (any, error)
	// Undone is called when the transaction is rolled back, or what became of it is
	// not known, before InTx returns. What the adapter has taken for the outcome
	// inside it is then none.
	Undone()
	// Claims reports whether the answer that End is given claims that the operation took
	// place. Under policy [Atomic] such an answer must come from InTx: if InTx was not
	// called, the record is left in doubt, and if its transaction was rolled back, the
	// record is released. Claims is called after the operation's function has returned.
	Claims() bool
}

// AdaptWith is for adapters, before they give the attempt's context to anybody.
func (a *Attempt) AdaptWith(with Adapter) { a.adapter = with }

// End records how the operation ended and returns what stands, which is not
// always what was wished: the outcome, or the error that every asker is told.
// Its own recording is not cancelled with the caller's context; it takes at
// most RecordTimeout. Ending twice is ErrInvalid.
//
// A finished effect whose outcome cannot be recorded is told as success, is
// observed as EventLate, and is tried again with the same token.
func (a *Attempt) End(v any, err error) (*Outcome, error) {
	out, err := a.end(v, err, true)
	return out, seal(err)
}

// EndQuiet is End for adapters that keep what they pass as v, or what they gave InTx. It
// returns nil and nil if the record holds exactly that as this attempt's outcome. It
// returns the outcome if the record holds another one: that of another attempt, one that
// a probe found, or v with a part that JSON has changed ([EventAltered]). An error is
// that of End.
func (a *Attempt) EndQuiet(v any, err error) (*Outcome, error) {
	out, err := a.end(v, err, err != nil && a.txOutcome.Load() == nil)
	return out, seal(err)
}

// end is End, which returns the attempt's own outcome only when it is asked for, or is not
// what the function returned.
func (a *Attempt) end(v any, err error, own bool) (out *Outcome, told error) {
	if !a.markEnded() {
		return nil, invalid("Attempt", "has ended already")
	}
	var current store.Record
	a.loadClaimed(&current)
	finished := false
	defer func() { // also when a function of the operation's own panics
		if !finished {
			a.renewer.stop() // nobody runs it: the lease decides
		}
		a.cancel(nil)
		if a.inflight != nil {
			a.c.inflight.finish(a.call.id, a.inflight, &current, nil)
		}
		a.c.leave()
	}()
	out, told = a.finish(v, err, &current)
	finished = true
	if replayed := current.Owner != a.token.Owner; out == nil && told == nil && (own || replayed || !a.lossless) {
		out = &Outcome{Record: current, Replayed: replayed, lossless: a.lossless}
	}
	return out, told
}

// Abandon ends an attempt whose function did not return, because of a panic or
// runtime.Goexit. That is no evidence of anything: the effect is unknown,
// unless it was in a transaction that is known to be rolled back. After End it
// does nothing, so it can be deferred.
func (a *Attempt) Abandon() {
	if !a.ended.Load() {
		_, _ = a.End(nil, errAbandoned)
	}
}

var errAbandoned = errors.New("semel: the function did not return")

func (a *Attempt) markEnded() bool { return a.ended.CompareAndSwap(false, true) }

// fenceError is an error of raising the fence or of looking behind it. However
// it is marked, it says nothing about what an earlier attempt did.
type fenceError struct{ err error }

func (e *fenceError) Error() string { return "fence: " + e.err.Error() }
func (e *fenceError) Unwrap() error { return e.err }

// fence does what policy Fenced asks of an attempt that follows one nobody
// knows the effect of: raise the fence, then look. It returns nothing when the
// attempt may act.
func (a *Attempt) fence() (*Outcome, error) {
	if a.policy != policyFenced || !a.tainted() {
		return nil, nil
	}
	acts := false
	defer func() {
		if !acts { // also on a panic in the operation's functions
			a.Abandon()
		}
	}()
	p := a.call.op.policy
	if err := p.raise(a.ctx, a.call.scope, a.call.key, a.token.Attempt); err != nil {
		return a.End(nil, &fenceError{err})
	}
	result, found, err := p.probe(a.ctx, a.call.scope, a.call.key)
	if err != nil {
		return a.End(nil, &fenceError{err})
	}
	if !found {
		acts = true
		return nil, nil
	}
	out, err := a.End(result, nil)
	if out != nil {
		out.Replayed = true
	}
	return out, err
}
