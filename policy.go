package semel

import "context"

// Policy names what happens to a key whose leader died, and with it what is
// promised. The zero Policy is unset: [Do] then holds, [DoTx] runs inline.
type Policy struct {
	kind  policyKind
	probe Probe
	raise RaiseFunc
}

// String returns the policy's name, as the function that makes it is named, and
// "unset" for the zero Policy.
func (p Policy) String() string {
	names := [...]string{"unset", "Atomic", "Hold", "Heal", "Fenced", "Keyed", "AtLeastOnce"}
	return names[p.kind]
}

type policyKind uint8

const (
	policyUnset policyKind = iota
	policyAtomic
	policyHold
	policyHeal
	policyFenced
	policyKeyed
	policyAtLeastOnce
)

// Probe looks into the domain for the effect of a key. It returns the result
// exactly as the operation itself would have returned it, and true, when the
// effect is there. Not found proves nothing and leads to nothing but doubt. It
// may be called at any time, by followers and sweepers, and must not write.
type Probe func(ctx context.Context, scope Scope, key string) (result any, found bool, err error)

// RaiseFunc raises the fence at the receiver of the effect, so that it refuses
// whatever an attempt with a lower number still sends.
type RaiseFunc func(ctx context.Context, scope Scope, key string, attempt uint32) error

// Atomic says that the effect is in the record's own database, in the
// transaction of [DoTx] or [InTx]: one effect per key, always. With a Lease the
// claim commits first, so that others get an answer while it runs; without one
// the whole attempt is one transaction.
//
// With [Do] this covers what the function does within InTx and nothing else. After a
// rollback of InTx's transaction every error means that nothing was committed. As long as
// the function has not called InTx, an error proves nothing unless it is marked
// [NotCommitted] or [Final], or Classify says so: the attempt's effect is unknown, and
// another attempt may run. A function that returns success without having called InTx is
// wrong: the caller gets [ErrOutcomeUnknown], the record is InDoubt, and the Observer gets
// an alarm.
func Atomic() Policy { return Policy{kind: policyAtomic} }

// Hold never runs again by itself: after a crash the record is InDoubt until a
// person or a reconciler says what happened. At most one effect. It is what
// [Do] does when no policy is set.
func Hold() Policy { return Policy{kind: policyHold} }

// Heal asks the domain for evidence whenever an unfinished record is found, and
// settles it when there is some; if there is none, it is Hold. At most one
// effect.
func Heal(probe Probe) Policy { return Policy{kind: policyHeal, probe: probe} }

// Fenced runs again after a crash, in the only order that is safe: raise the
// fence at the receiver, then look whether an earlier attempt got through, then
// act. At most one effect, if the receiver keeps the fence. An error marked
// [NotCommitted] then speaks for the earlier attempts too.
func Fenced(raise RaiseFunc, look Probe) Policy {
	return Policy{kind: policyFenced, raise: raise, probe: look}
}

// Keyed runs again after a crash, against a receiver that does the same thing
// once per key: give it [ChildKey], which is the same in every attempt. One
// effect, as long as the receiver remembers the key longer than we do. Mark an
// error [NotCommitted] or [Final] only when it is the receiver's own answer to
// that key: it is taken for proof about the earlier attempts too, which an error
// raised before the receiver was asked is not.
func Keyed() Policy { return Policy{kind: policyKeyed} }

// AtLeastOnce runs again after a crash. The effect may happen once per attempt.
func AtLeastOnce() Policy { return Policy{kind: policyAtLeastOnce} }

// orHold is the policy of an attempt whose claim commits first: unset is the safest.
func (p Policy) orHold() policyKind {
	if p.kind == policyUnset {
		return policyHold
	}
	return p.kind
}

// runsAgain tells whether an attempt may follow one whose effect is unknown.
func (k policyKind) runsAgain() bool {
	switch k {
	case policyAtomic, policyFenced, policyKeyed, policyAtLeastOnce:
		return true
	case policyUnset, policyHold, policyHeal:
		return false
	default:
		return false
	}
}

// speaksForAll tells whether a refusal that the last attempt got proves that no
// earlier one had an effect either: by the fence and the look-up at the receiver, or
// by the receiver's own memory of the key. A rollback under Atomic proves nothing about
// the attempts of a version of the program that had another policy, and those of its
// own policy leave no taint.
func (k policyKind) speaksForAll() bool {
	return k == policyFenced || k == policyKeyed
}

// valid returns what is missing, naming the field.
func (p Policy) valid() error {
	if p.kind == policyHeal && p.probe == nil {
		return invalid("Policy", "Heal needs a probe")
	}
	if p.kind == policyFenced && (p.raise == nil || p.probe == nil) {
		return invalid("Policy", "Fenced needs both a raise and a look function")
	}
	return nil
}

// OnError says what an error leads to that proves that nothing was committed.
type OnError uint8

const (
	// Release lets the same key try again: nothing stays, or a Pending record.
	Release OnError = iota
	// Keep stores the failure: the key has failed for ever, and a new try needs
	// a new key.
	Keep
)
