package protocol

// Policy is what may happen to a key after the effect of an attempt has become
// unknown. The constants are the policies of the package semel.
type Policy uint8

// The policies. Unset is a transaction without a claim, or a record whose operation
// is not known.
const (
	Unset Policy = iota
	Atomic
	Hold
	Heal
	Fenced
	Keyed
	AtLeastOnce
)

// String returns the name of the policy.
func (p Policy) String() string {
	names := [...]string{"unset", "Atomic", "Hold", "Heal", "Fenced", "Keyed", "AtLeastOnce"}
	return names[p]
}

// runsAgain reports whether another attempt may follow one whose effect is unknown.
func (p Policy) runsAgain() bool {
	return p == Atomic || p == Fenced || p == Keyed || p == AtLeastOnce
}

// speaksForAll reports whether a refusal of the last attempt proves that no earlier
// attempt had an effect: by the fence and the look-up, or by the receiver's memory
// of the key. A rollback under Atomic proves nothing about attempts of a program
// version with another policy; attempts under Atomic leave no taint.
func (p Policy) speaksForAll() bool { return p == Fenced || p == Keyed }

// ClaimsFirst reports whether an operation commits its claim before its function
// runs. Otherwise the whole attempt is one transaction.
func (p Policy) ClaimsFirst(hasLease bool) bool {
	return p != Unset && (p != Atomic || hasLease)
}

// IsUnset reports whether no policy is set.
func (p Policy) IsUnset() bool { return p == Unset }

// Transactional reports whether the effect is in a transaction of the store.
func (p Policy) Transactional() bool { return p == Atomic }

// Probes reports whether a probe can find the effect of an unfinished record, before
// its lease has expired.
func (p Policy) Probes() bool { return p == Heal }

// Raises reports whether an attempt that follows one with an unknown effect must
// raise the fence and look the effect up before it runs.
func (p Policy) Raises() bool { return p == Fenced }

// OrDefault returns the policy of an operation that claims first: Hold if none is
// set.
func (p Policy) OrDefault() Policy {
	if p == Unset {
		return Hold
	}
	return p
}
