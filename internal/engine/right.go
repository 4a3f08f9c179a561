package engine

import (
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

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

// leased is the right of an attempt whose claim is committed.
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
func (l *leased) rolledBack() bool { return l.policy.Transactional() && l.tx.wasTried() }

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
	e := protocol.Event{
		Owner: x.token.Owner, Policy: x.policy, Request: &x.call, Identity: x.call.identity(), Expire: x.times.Retention,
	}
	e.Issued, e.MaxAge = x.call.maxAge()
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
