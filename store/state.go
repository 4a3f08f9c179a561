package store

import "fmt"

// State is the state of a record. The numbers are stored and never change their
// meaning.
type State uint8

const (
	// Absent is the zero State: there is no record.
	Absent State = 0
	// Pending means that the call is recorded and no attempt is running: a queued
	// task, an issued token, or a released attempt.
	Pending State = 1
	// InProgress means claimed: a leader has a lease, and may or may not have
	// committed.
	InProgress State = 2
	// InDoubt means that no attempt is running, and the effect is unknown. Evidence
	// or an operator resolves it.
	InDoubt State = 3
	// Succeeded is final: the result is stored, or a tombstone that says that the
	// result is not available.
	Succeeded State = 4
	// Failed is final, and written only with proof that nothing was committed.
	Failed State = 5
)

// States returns all states of records, in the order of their numbers.
func States() []State { return []State{Pending, InProgress, InDoubt, Succeeded, Failed} }

// Final reports whether s is Succeeded or Failed.
func (s State) Final() bool { return s == Succeeded || s == Failed }

// Unfinished reports whether s is InProgress or InDoubt. Such a record never
// expires and is never purged.
func (s State) Unfinished() bool { return s == InProgress || s == InDoubt }

// String returns the state's name.
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
