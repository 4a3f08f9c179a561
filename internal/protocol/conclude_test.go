package protocol

import (
	"fmt"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// everyEnding returns every ending that an attempt can have.
func everyEnding() []Ending {
	var endings []Ending
	for policy := Unset; policy <= AtLeastOnce; policy++ {
		for cause := ByResult; cause <= OutsideTx; cause++ {
			for retry := NoRetry; retry <= RetriesExhausted; retry++ {
				for bits := range 1 << 8 {
					has := func(bit int) bool { return bits&(1<<bit) > 0 }
					e := Ending{
						Policy: policy, Cause: cause, Retry: retry,
						Inline: has(0), Tainted: has(1), Proven: has(2), Final: has(3), Answered: has(4),
						Evidence: has(5), Redelivered: has(6), ResultsOnly: has(7),
					}
					if possibleEnding(e) {
						endings = append(endings, e)
					}
				}
			}
		}
	}
	return endings
}

// possibleEnding reports whether an attempt can end so.
func possibleEnding(e Ending) bool {
	switch {
	case e.Inline && (e.Policy != Unset && e.Policy != Atomic || e.Cause == OutsideTx || e.Cause == ByCancellation):
		return false // DoTx runs other policies with a claim, and nothing cancels it
	case e.Inline && e.Cause != ByResult && !e.Proven:
		return false // a rollback is proof
	case !e.Inline && (e.Policy == Unset || e.ResultsOnly):
		return false
	case e.Cause == OutsideTx && e.Policy != Atomic:
		return false
	case e.Cause == ByCrashes && e.Retry != RetriesExhausted:
		return false
	case e.Final && (!e.Proven || e.Cause != ByError):
		return false
	case e.Evidence && !e.NeedsProbe():
		return false
	case e.ResultsOnly && e.Retry != NoRetry:
		return false
	}
	return true
}

// eventOf returns the event of a conclusion, by the owner of the record.
func eventOf(e Ending, c Conclusion) Event {
	return Event{
		Step: c.Step, To: c.To, Proven: c.Proven, Policy: e.Policy, Owner: fresh,
		Token: store.Token{State: store.InProgress, Attempt: 2, Owner: mine}, Request: comparison(SameRequest),
	}
}

// recordOf returns the record that an attempt ends.
func recordOf(e Ending) store.Record {
	r := store.Record{Tainted: e.Tainted}
	if e.Inline {
		r.Token = store.Token{State: store.Pending, Attempt: 1, Owner: theirs}
		return r
	}
	r.Token = store.Token{State: store.InProgress, Attempt: 2, Owner: mine}
	return r
}

// TestConclusionsKeepTheInvariants checks the invariants of DESIGN over every ending:
// of the conclusion, and of the record that the transition function makes of it.
func TestConclusionsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	for _, e := range everyEnding() {
		c := Conclude(e)
		if c == (Conclusion{}) {
			if !e.Inline || e.Cause == ByResult {
				t.Errorf("%+v: nothing is written, so the claim stays", e)
			}
			continue
		}
		d := Next(recordOf(e), eventOf(e, c))
		if d.Answer != Apply {
			t.Errorf("%+v: %+v: the transition function does not apply the step", e, c)
			continue
		}
		for _, broken := range brokenByConclusion(e, c, d.Change.To) {
			t.Errorf("%+v: %+v: %v: %s", e, c, d.Change.To.State, broken)
		}
	}
}

func brokenByConclusion(e Ending, c Conclusion, to store.Record) []string {
	var broken []string
	law := func(holds bool, text string) {
		if !holds {
			broken = append(broken, text)
		}
	}
	proven := e.Proven || e.Cause == ByCrashes
	forAll := !e.Tainted || (e.Policy == Fenced || e.Policy == Keyed) && e.Answered
	succeeds := e.Cause == ByResult || e.Evidence
	law((to.State == store.Succeeded) == succeeds, "Succeeded means a result or evidence, and these mean Succeeded")
	law(to.State != store.Failed || proven && forAll, "Failed without proof")
	law(to.State != store.Failed || !e.Tainted || e.Policy == Fenced || e.Policy == Keyed, "Failed although an earlier attempt may have had an effect")
	law(to.State != store.Pending || proven || runsAgain(e.Policy), "another attempt that the policy forbids")
	law(to.State != store.Pending || proven || to.Tainted || e.Policy == Atomic && beganAtomic(mine), "an unknown effect leaves no taint")
	law(!e.Tainted || to.Tainted || to.State.Final(), "the taint is lost")
	law(e.Tainted || !to.Tainted || !proven || e.Cause == OutsideTx, "a taint without an unknown effect")
	law(to.State != store.Failed || !e.Tainted || e.Cause == ByError, "Failed by an error that is no answer of the receiver")
	law(e.Cause != ByCrashes || to.State != store.Failed || c.Payload == DeadLetter, "a key that crashed too often is no dead letter")
	law(!e.NeedsProbe() || e.Policy == Heal && !proven && (e.Cause == ByError || e.Cause == ByCancellation), "a probe that cannot decide")
	law(to.State != store.InDoubt || proven || e.Policy != Atomic || to.Tainted, "an unknown effect outside of a transaction leaves no taint")
	law(e.Cause != OutsideTx || to.State == store.InDoubt && to.Tainted, "an effect outside of the transaction may happen again")
	law(e.Cause != ByCancellation || to.State == store.InDoubt || to.State.Final(), "a cancelled key runs again")
	law(e.Cause != ByCrashes || e.Inline || to.State == store.InDoubt || to.State.Final(), "a key that crashed too often runs again")
	law((c.Payload == Result) == succeeds, "a result is stored for a success, and for nothing else")
	law(to.State != store.Failed || c.Payload == Failure || c.Payload == DeadLetter, "Failed without the failure")
	law(c.Payload != DeadLetter || e.Retry != NoRetry, "a dead letter of an operation that is not retried")
	law(c.Payload != DeadLetter || to.State == store.Failed || runsAgain(e.Policy) || e.Final, "a dead letter that cannot be redriven")
	law(to.State != store.Pending || c.Payload == Progress, "Pending without progress")
	law(to.State != store.InDoubt || c.Payload == Progress || c.Payload == DeadLetter, "InDoubt without the error and what was issued")
	return broken
}

func runsAgain(p Policy) bool { return p == Atomic || p >= Fenced }

// TestConclude has the cases that decide for each policy, by name.
func TestConclude(t *testing.T) {
	t.Parallel()
	end := func(s Step, p Payload) Conclusion {
		return Conclusion{Step: s, Payload: p, Proven: s == StepFail || s == StepRelease}
	}
	for _, c := range []struct {
		name string
		in   Ending
		want Conclusion
	}{
		{"a result", Ending{Policy: Hold}, end(StepSucceed, Result)},
		{"an unknown effect under Hold", Ending{Policy: Hold, Cause: ByError}, end(StepDoubt, Progress)},
		{"an unknown effect under AtLeastOnce", Ending{Policy: AtLeastOnce, Cause: ByError}, end(StepRequeue, Progress)},
		{"an unknown effect under Heal", Ending{Policy: Heal, Cause: ByError}, end(StepDoubt, Progress)},
		{"an unknown effect with evidence", Ending{Policy: Heal, Cause: ByError, Evidence: true}, end(StepSucceed, Result)},
		{"proof", Ending{Policy: Hold, Cause: ByError, Proven: true}, end(StepRelease, Progress)},
		{"a final failure", Ending{Policy: Hold, Cause: ByError, Proven: true, Final: true}, end(StepFail, Failure)},
		{
			"a message that its consumer rejects",
			Ending{Policy: Keyed, Cause: ByError, Proven: true, Final: true, Retry: RetryLater, Redelivered: true},
			end(StepFail, DeadLetter),
		},
		{"the last retry", Ending{Policy: Keyed, Cause: ByError, Proven: true, Retry: RetriesExhausted}, end(StepFail, DeadLetter)},
		{
			"the last retry after an unknown effect",
			Ending{Policy: Keyed, Cause: ByError, Proven: true, Tainted: true, Retry: RetriesExhausted},
			end(StepDoubt, DeadLetter),
		},
		{
			"the last retry after an unknown effect that the receiver denies",
			Ending{Policy: Keyed, Cause: ByError, Proven: true, Tainted: true, Answered: true, Retry: RetriesExhausted},
			end(StepFail, DeadLetter),
		},
		{
			"a final failure after an unknown effect",
			Ending{Policy: Keyed, Cause: ByError, Proven: true, Final: true, Tainted: true},
			end(StepDoubt, Progress),
		},
		{"too many crashes", Ending{Policy: Atomic, Cause: ByCrashes, Retry: RetriesExhausted}, end(StepFail, DeadLetter)},
		{"too many crashes under Hold", Ending{Policy: Hold, Cause: ByCrashes, Tainted: true, Retry: RetriesExhausted}, end(StepDoubt, Progress)},
		{"cancelled with proof", Ending{Policy: Keyed, Cause: ByCancellation, Proven: true}, end(StepFail, Failure)},
		{"cancelled with an unknown effect", Ending{Policy: Keyed, Cause: ByCancellation}, end(StepDoubt, Progress)},
		{"a result outside of the transaction", Ending{Policy: Atomic, Cause: OutsideTx}, end(StepDoubt, Progress)},
		{"inline: an error", Ending{Inline: true, Cause: ByError, Proven: true}, Conclusion{}},
		{
			"inline: a final failure",
			Ending{Inline: true, Cause: ByError, Proven: true, Final: true},
			Conclusion{Step: StepInline, To: store.Failed, Proven: true, Payload: Failure},
		},
		{"inline: a final failure after an unknown effect", Ending{Inline: true, Cause: ByError, Proven: true, Final: true, Tainted: true}, Conclusion{}},
		{
			"inline: to be retried",
			Ending{Inline: true, Cause: ByError, Proven: true, Retry: RetryLater},
			Conclusion{Step: StepInline, To: store.Pending, Proven: true, Payload: Progress},
		},
		{"inline: results only", Ending{Inline: true, Cause: ByError, Proven: true, Final: true, ResultsOnly: true}, Conclusion{}},
	} {
		if got := Conclude(c.in); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestVerdict covers every input.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for policy := Unset; policy <= AtLeastOnce; policy++ {
		for bits := range 1 << 3 {
			proven, tainted, answered := bits&1 > 0, bits&2 > 0, bits&4 > 0
			want := store.Unknown
			switch {
			case proven && !tainted, proven && answered && (policy == Fenced || policy == Keyed):
				want = store.NotCommitted
			}
			check.Equal(t, Verdict(proven, tainted, policy, answered), want, "Verdict(%v, %v, %v, %v)", proven, tainted, policy, answered)
		}
	}
}

// TestClassify covers every verdict, every error of the contract, and every way in
// which a handler can end.
func TestClassify(t *testing.T) {
	t.Parallel()
	errs := map[string]error{
		"none": nil, "other": fmt.Errorf("other"), "superseded": wrap(store.ErrSuperseded), "conflict": wrap(store.ErrConflict),
		"interrupted": wrap(store.ErrInterrupted), "no partition": wrap(store.ErrNoPartition), "ended": wrap(store.ErrTxEndedByHandler),
	}
	rolledBack := map[string]TxResult{
		"superseded": TxSuperseded, "conflict": TxConflict, "interrupted": TxInterrupted, "no partition": TxNoPartition,
	}
	for _, verdict := range []store.Verdict{store.Unknown, store.Committed, store.NotCommitted} {
		for name, err := range errs {
			for bits := range 1 << 3 {
				in := TxEnd{Verdict: verdict, Err: err, Called: bits&1 > 0, Failed: bits&2 > 0, Stores: bits&4 > 0}
				got := Classify(in)
				if want := classification(in, name, rolledBack); got != want {
					t.Errorf("%s: %+v: %d, want %d", name, in, got, want)
				}
			}
		}
	}
}

func wrap(err error) error { return fmt.Errorf("wrapped: %w", err) }

// classification derives the result from what is certain: first what is committed,
// then what is rolled back.
func classification(in TxEnd, name string, rolledBack map[string]TxResult) TxResult {
	circumstance, named := rolledBack[name]
	certain := in.Verdict == store.NotCommitted
	switch {
	case name == "none":
		return TxCommitted
	case in.Verdict == store.Committed:
		return TxCommittedByHandler
	case !in.Called:
		return TxNotCalled
	case name == "ended" && !certain:
		return TxEndedByHandler
	case certain && named:
		return circumstance
	case in.Failed && (certain || in.Stores):
		return TxHandlerFailed
	case certain:
		return TxRolledBack
	}
	return TxUnknown
}
