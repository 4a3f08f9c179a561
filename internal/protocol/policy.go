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
	switch p {
	case Atomic, Fenced, Keyed, AtLeastOnce:
		return true
	case Unset, Hold, Heal:
		return false
	default:
		return false
	}
}

// speaksForAll reports whether a refusal of the last attempt proves that no earlier
// attempt had an effect: by the fence and the look-up, or by the receiver's memory
// of the key. A rollback under Atomic proves nothing about attempts of a program
// version with another policy; attempts under Atomic leave no taint.
func (p Policy) speaksForAll() bool { return p == Fenced || p == Keyed }
