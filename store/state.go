package store

import "fmt"

// State says what is known about an operation's record. The numbers are stored
// and never change their meaning.
type State uint8

const (
	// Absent is the zero State: no record stands.
	Absent State = 0
	// Pending is recorded, and nobody is running it: a queued task, an issued
	// token, or an attempt that was released.
	Pending State = 1
	// InProgress is claimed: a leader has a lease, and may or may not have
	// committed.
	InProgress State = 2
	// InDoubt means that nobody is running it and the effect may or may not
	// have happened. Evidence or a person settles it.
	InDoubt State = 3
	// Succeeded is final: the result is stored, or a tombstone that says the
	// result cannot be given.
	Succeeded State = 4
	// Failed is final, and written only on proof that nothing committed.
	Failed State = 5
)

// States lists every state a record can stand in, in the order of their numbers.
func States() []State { return []State{Pending, InProgress, InDoubt, Succeeded, Failed} }

// Final reports whether s is Succeeded or Failed.
func (s State) Final() bool { return s == Succeeded || s == Failed }

// Unfinished reports whether s is InProgress or InDoubt. Such a record never
// expires and is never purged.
func (s State) Unfinished() bool { return s == InProgress || s == InDoubt }

// String returns the state's name as documents write it.
func (s State) String() string {
	switch s {
	case Absent:
		return "Absent"
	case Pending:
		return "Pending"
	case InProgress:
		return "InProgress"
	case InDoubt:
		return "InDoubt"
	case Succeeded:
		return "Succeeded"
	case Failed:
		return "Failed"
	default:
		return fmt.Sprintf("State(%d)", uint8(s))
	}
}
