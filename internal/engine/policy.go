package engine

import (
	"context"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
)

// Policy names what happens to a key after its leader has crashed, and so the
// guarantee of the operation.
type Policy struct {
	kind  protocol.Policy
	probe Probe
	raise RaiseFunc
}

// String returns the name of the function that makes the policy, and "unset" for
// the zero Policy.
func (p Policy) String() string { return p.kind.String() }

// Probe searches the domain for the effect of a key.
type Probe func(ctx context.Context, scope Scope, key string) (result any, found bool, err error)

// RaiseFunc raises the fence at the receiver of the effect.
type RaiseFunc func(ctx context.Context, scope Scope, key string, attempt uint32) error

// Atomic means that the effect is in the record's own database, in the transaction
// of [DoTx] or [InTx]: one effect per key, always.
func Atomic() Policy { return Policy{kind: protocol.Atomic} }

// Hold never runs an operation again by itself: after a crash the record is InDoubt
// until an operator or a reconciler resolves it.
func Hold() Policy { return Policy{kind: protocol.Hold} }

// Heal probes the domain for evidence whenever it finds an unfinished record.
func Heal(probe Probe) Policy { return Policy{kind: protocol.Heal, probe: probe} }

// Fenced runs an operation again after a crash, in the only safe order: raise the
// fence at the receiver, look for the effect of an earlier attempt, then run.
func Fenced(raise RaiseFunc, look Probe) Policy {
	return Policy{kind: protocol.Fenced, raise: raise, probe: look}
}

// Keyed runs an operation again after a crash, with a receiver that deduplicates by
// key: give it [ChildKey], which is the same in every attempt.
func Keyed() Policy { return Policy{kind: protocol.Keyed} }

// AtLeastOnce runs an operation again after a crash.
func AtLeastOnce() Policy { return Policy{kind: protocol.AtLeastOnce} }

// IsZero reports whether no policy is set.
func (p Policy) IsZero() bool { return p.kind.IsUnset() }

// IsAtomic reports whether the policy is [Atomic].
func (p Policy) IsAtomic() bool { return p.kind.Transactional() }

// HasProbe reports whether the policy has a probe, as Heal and Fenced have.
func (p Policy) HasProbe() bool { return p.probe != nil }

// valid returns an error that names the missing part.
func (p Policy) valid() error {
	if p.kind.Probes() && p.probe == nil {
		return callerr.Invalid("Policy", "Heal needs a probe")
	}
	if p.kind.Raises() && (p.raise == nil || p.probe == nil) {
		return callerr.Invalid("Policy", "Fenced needs both a raise and a look function")
	}
	return nil
}

// OnError says what happens after an error with proof that nothing was committed.
type OnError uint8

const (
	// Release lets a retry run the operation again: no record remains, or a Pending
	// one.
	Release OnError = iota
	// Keep stores the failure. The key has failed for good; a new try needs a new
	// key.
	Keep
)
