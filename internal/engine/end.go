package engine

import (
	"github.com/semelgo/semel/internal/callerr"
)

// End records how the operation ended. It returns the current outcome, or the error
// that every caller receives; either can differ from the arguments, because another
// attempt may have ended the record. End does not stop with the caller's context;
// it takes at most RecordTimeout. Ending twice is ErrInvalid.
//
// If the outcome of a finished effect cannot be recorded, End returns success, the
// Observer receives event.Late, and recording is retried with the same token.
func (a *Attempt) End(v any, err error) (*Outcome, error) {
	out, err := a.end(v, err, true)
	return out, callerr.Seal(err)
}

// EndQuiet is End for adapters that keep the value that they pass as v, or gave to
// InTx. It returns nil and nil if the record holds exactly that value as this
// attempt's outcome. It returns the outcome if the record holds another one: the
// outcome of another attempt, one that a probe found, or v with a part that JSON
// has changed ([event.Altered]). An error is the same as End's.
func (a *Attempt) EndQuiet(v any, err error) (*Outcome, error) {
	out, err := a.end(v, err, err != nil && a.txOutcome.Load() == nil)
	return out, callerr.Seal(err)
}

// end implements End. It returns the attempt's own outcome only if own is set, or
// if decoding it does not give the function's value.
func (a *Attempt) end(v any, err error, own bool) (out *Outcome, told error) {
	if !a.markEnded() {
		return nil, callerr.Invalid("Attempt", "has ended already")
	}
	current := a.Record()
	finished := false
	defer func() { // also when a function of the operation panics
		if !finished {
			a.renewer.stop() // the attempt is over: the lease decides
		}
		a.close(&current, told)
	}()
	out, told = a.finish(v, err, &current)
	finished = true
	if replayed := current.Owner != a.token.Owner; out == nil && told == nil && (own || replayed || !a.lossless) {
		out = &Outcome{Record: current, Replayed: replayed, lossless: a.lossless}
	}
	return out, told
}

// Abandon ends an attempt whose function did not return, because of a panic or
// runtime.Goexit. That is no evidence: the effect is unknown, unless it was in a
// transaction that was rolled back. After End it does nothing, so it can be
// deferred.
func (a *Attempt) Abandon() {
	if !a.ended.Load() {
		_, _ = a.End(nil, callerr.ErrAbandoned)
	}
}

// AbandonWith is [Attempt.Abandon] with the reason why the function did not return.
// The reason is kept in the record's [Progress] and sent to the Observer. No mark
// in it is evidence.
func (a *Attempt) AbandonWith(why error) {
	if !a.ended.Load() {
		_, _ = a.End(nil, &callerr.AbandonedError{Why: why})
	}
}
