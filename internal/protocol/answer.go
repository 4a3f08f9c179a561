package protocol

import "github.com/semelgo/semel/store"

// AnswerTo returns the answer of the current record to a request that starts no
// attempt. Lost means that there is no record.
func AnswerTo(current *store.Record, match RequestMatch) Answer {
	switch {
	case current.State == store.Absent:
		return Lost
	case match != SameRequest:
		return match.answer()
	}
	switch current.State {
	case store.Succeeded, store.Failed:
		return Replay
	case store.InDoubt:
		return InDoubt
	case store.Pending, store.InProgress:
		return Wait
	case store.Absent:
	}
	return Refuse
}

// Contradicts reports whether the current record contradicts an attempt
// that has succeeded and could not record its success: an operator must compare the record
// with the domain.
func Contradicts(end Step, current *store.Record) bool {
	return end == StepSucceed && current.State != store.Succeeded
}

// IsEnd reports whether a change ends or renews an attempt: it keeps the owner.
func IsEnd(change *store.Change) bool {
	return change.If.State == store.InProgress && change.If.Owner == change.To.Owner
}

// CanResolve reports whether an operator can resolve a record in doubt to a state.
func CanResolve(to store.State) bool { return to == store.Pending || to.Final() }

// Late is what became of an end that was recorded late, or could not be recorded.
type Late uint8

const (
	// LateRecorded means that the record has the end.
	LateRecorded Late = iota
	// LateAbsent means that there is no record any more.
	LateAbsent
	// LateConflict means that the record contradicts an attempt that has
	// succeeded: an operator must compare the record with the domain.
	LateConflict
	// LateInDoubt means that the record of this attempt is in doubt, and the end
	// does not settle it.
	LateInDoubt
	// LateSuperseded means that another attempt has changed the record.
	LateSuperseded
)

// LateEnd returns what became of the end of attempt n, which the current record has
// if recorded is set.
func LateEnd(end Step, n uint32, recorded bool, current *store.Record) Late {
	switch {
	case recorded:
		return LateRecorded
	case current.State == store.Absent:
		return LateAbsent
	case Contradicts(end, current):
		return LateConflict
	case end == StepRelease && current.State == store.InDoubt && current.Attempt == n:
		return LateInDoubt
	default:
		return LateSuperseded
	}
}
