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

// Contradicts reports whether the current record says something else than an attempt
// that has succeeded and could not record that: an operator must compare the record
// with the domain.
func Contradicts(end Step, current *store.Record) bool {
	return end == StepSucceed && current.State != store.Succeeded
}

// CanResolve reports whether an operator can resolve a record in doubt to a state.
func CanResolve(to store.State) bool { return to == store.Pending || to.Final() }
