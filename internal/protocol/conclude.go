package protocol

import "github.com/semelgo/semel/store"

// Ending is everything that is known about an attempt when it ends.
type Ending struct {
	Policy Policy
	// Inline means that the attempt is one transaction, without a claim.
	Inline bool
	// Tainted means that an earlier attempt may have had an effect.
	Tainted bool

	Cause Cause
	// Proven means that there is proof that this attempt had no effect. A rollback
	// is the proof of an inline attempt.
	Proven bool
	// Final means that the error is the operation's own answer, to be stored. It
	// needs proof.
	Final bool
	// Answered means that the error is an answer of the receiver of the effect. Only
	// the receiver can know about earlier attempts of the same key.
	Answered bool
	// Evidence means that a probe has found the effect.
	Evidence bool

	Retry Retry
	// Redelivered means that a broker delivers the message again, so that a final
	// failure leaves a dead letter.
	Redelivered bool
	// ResultsOnly means that the operation stores no failures.
	ResultsOnly bool
}

// Cause says why an attempt has ended.
type Cause uint8

// The causes.
const (
	// ByResult means that the function returned a result.
	ByResult Cause = iota
	// ByError means that the function returned an error, or panicked.
	ByError
	// ByCancellation means that the key was cancelled, and the function returned an
	// error.
	ByCancellation
	// ByCrashes means that the function was not called, because too many earlier
	// attempts crashed.
	ByCrashes
	// OutsideTx means that the function returned a result under policy Atomic
	// although its effect, if there is one, is outside of the transaction.
	OutsideTx
)

// Retry says what the retry rule of the operation makes of an error.
type Retry uint8

const (
	// NoRetry means that the operation has no retry rule.
	NoRetry Retry = iota
	// RetryLater means that another attempt follows.
	RetryLater
	// RetriesExhausted means that no attempt is left.
	RetriesExhausted
)

// Payload says what is stored as the outcome of a record.
type Payload uint8

const (
	// NoPayload means that the stored outcome does not change.
	NoPayload Payload = iota
	// Result is the function's result, or the one that the probe has found.
	Result
	// Failure is the error, as every caller receives it.
	Failure
	// DeadLetter is the error, of a key that an operator may redrive.
	DeadLetter
	// Progress is the history of the attempts.
	Progress
)

// Conclusion is how an attempt ends its record.
type Conclusion struct {
	// Step is the step to request; empty: nothing is written.
	Step Step
	// To is the state that an inline attempt writes.
	To store.State
	// Proven is that of the event.
	Proven  bool
	Payload Payload
}

// Conclude decides how an attempt ends its record. The transition function then
// compares the event with the current record.
func Conclude(e Ending) Conclusion {
	switch {
	case e.Inline:
		return e.inline()
	case e.Cause == ByResult, e.NeedsProbe() && e.Evidence:
		return Conclusion{Step: StepSucceed, Payload: Result}
	case e.Cause == OutsideTx:
		// The program is wrong, so the operation must not run again.
		return Conclusion{Step: StepDoubt, Payload: Progress}
	case e.Cause == ByCrashes:
		return e.forGood()
	case e.Proven && e.Final:
		return e.finalFailure()
	case e.Cause == ByCancellation, e.Retry == RetriesExhausted:
		return e.forGood()
	default:
		return e.again()
	}
}

// NeedsProbe reports whether the domain must be probed for evidence before Conclude:
// the effect of the attempt is unknown, and the policy is Heal.
func (e Ending) NeedsProbe() bool {
	return e.Policy == Heal && !e.Proven && (e.Cause == ByError || e.Cause == ByCancellation)
}

// again ends an attempt so that another one may follow, if the policy allows it.
func (e Ending) again() Conclusion {
	switch {
	case e.Proven:
		return Conclusion{Step: StepRelease, Proven: true, Payload: Progress}
	case e.Policy.runsAgain():
		return Conclusion{Step: StepRequeue, Payload: Progress}
	default:
		return Conclusion{Step: StepDoubt, Payload: Progress}
	}
}

// finalFailure ends an attempt with its own answer that nothing has happened. After an
// earlier attempt with an unknown effect the record is InDoubt, and keeps its progress:
// an operator may allow another attempt.
func (e Ending) finalFailure() Conclusion {
	if e.provenForAll() {
		return Conclusion{Step: StepFail, Proven: true, Payload: e.finalPayload(Failure)}
	}
	return Conclusion{Step: StepDoubt, Payload: e.finalPayload(Progress)}
}

// forGood ends an attempt after which none may follow: Failed with proof for all
// attempts, otherwise InDoubt.
func (e Ending) forGood() Conclusion {
	failed := e.provenForAll()
	c := Conclusion{Step: StepDoubt, Payload: Progress}
	if failed {
		c = Conclusion{Step: StepFail, Proven: true, Payload: Failure}
	}
	if e.Cause != ByCancellation && (failed || e.Policy.runsAgain()) {
		c.Payload = DeadLetter
	}
	return c
}

// provenForAll reports whether there is proof that no attempt had an effect. An
// attempt that was not called had none.
func (e Ending) provenForAll() bool {
	proven, answered := e.Proven || e.Cause == ByCrashes, e.Answered && e.Cause == ByError
	return Verdict(proven, e.Tainted, e.Policy, answered) == store.NotCommitted
}

// inline ends an attempt whose transaction was rolled back, or commits with the
// result. After an attempt with an unknown effect, no failure is stored: the record
// stays as it is, or becomes Pending again.
func (e Ending) inline() Conclusion {
	end := func(to store.State, p Payload) Conclusion {
		return Conclusion{Step: StepInline, To: to, Proven: to != store.Succeeded, Payload: p}
	}
	switch {
	case e.Cause == ByResult:
		return end(store.Succeeded, Result)
	case e.ResultsOnly:
		return Conclusion{}
	case e.Final && !e.Tainted:
		return end(store.Failed, e.finalPayload(Failure))
	case e.Retry == RetriesExhausted && !e.Tainted:
		return end(store.Failed, DeadLetter)
	case e.Retry != NoRetry:
		return end(store.Pending, Progress)
	default:
		return Conclusion{}
	}
}

// finalPayload returns how a final failure is stored: as p, unless it leaves a dead
// letter.
func (e Ending) finalPayload(p Payload) Payload {
	if e.Redelivered && e.Retry != NoRetry {
		return DeadLetter
	}
	return p
}

// Verdict returns what the proof about one attempt says about the effect of the key.
// If an earlier attempt may have had an effect, only the receiver's own answer
// proves that it did not.
func Verdict(proven, tainted bool, p Policy, answered bool) store.Verdict {
	if proven && (!tainted || p.speaksForAll() && answered) {
		return store.NotCommitted
	}
	return store.Unknown
}
