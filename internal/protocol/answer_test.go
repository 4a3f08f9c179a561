package protocol

import (
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestAnswerTo covers every record and every comparison with it.
func TestAnswerTo(t *testing.T) {
	t.Parallel()
	answers := map[store.State]Answer{
		store.Pending: Wait, store.InProgress: Wait, store.InDoubt: InDoubt, store.Succeeded: Replay, store.Failed: Replay, 17: Refuse,
	}
	for _, match := range []RequestMatch{SameRequest, OtherRequest, UnknownRequest} {
		check.Equal(t, AnswerTo(&store.Record{}, match), Lost, "no record")
		for state, want := range answers {
			switch match {
			case SameRequest:
			case OtherRequest:
				want = Mismatch
			case UnknownRequest:
				want = Newer
			}
			r := store.Record{Token: store.Token{State: state, Attempt: 1, Owner: mine}}
			check.Equal(t, AnswerTo(&r, match), want, "%v, request %d", state, match)
		}
	}
}

// TestAnswersAgree: a request that starts no attempt gets the answer of one that
// would start an attempt, if that may not start one.
func TestAnswersAgree(t *testing.T) {
	t.Parallel()
	for _, current := range everyRecord() {
		for policy := Unset; policy <= AtLeastOnce; policy++ {
			for match := SameRequest; match <= UnknownRequest; match++ {
				d := Next(current, Event{Step: StepClaim, Policy: policy, Owner: fresh, Request: comparison(match), Probed: true})
				if got := AnswerTo(&current, match); d.Answer != Apply && got != d.Answer {
					t.Errorf("%v, due %v, %v, request %d: answer %d, but a claim gets %d", current.State, current.Due, policy, match, got, d.Answer)
				}
			}
		}
	}
}

// TestLateEnd covers every end of an attempt and every record that it can find.
func TestLateEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []Step{StepSucceed, StepFail, StepRelease, StepRequeue, StepDoubt} {
		for _, state := range append(store.States(), store.Absent) {
			for _, n := range []uint32{2, 3} {
				current := store.Record{Token: store.Token{State: state, Attempt: 2, Owner: theirs}}
				check.Equal(t, LateEnd(end, n, true, &current), LateRecorded, "%s, recorded", end)
				want := LateSuperseded
				switch {
				case state == store.Absent:
					want = LateAbsent
				case end == StepSucceed && state != store.Succeeded:
					want = LateConflict
				case end == StepRelease && state == store.InDoubt && n == 2:
					want = LateInDoubt
				}
				check.Equal(t, LateEnd(end, n, false, &current), want, "%s of attempt %d, %v", end, n, state)
				check.Equal(t, Contradicts(end, &current), (end == StepSucceed && state != store.Succeeded), "Contradicts(%s, %v)", end, state)
			}
		}
	}
}

// TestPolicies covers what each policy is.
func TestPolicies(t *testing.T) {
	t.Parallel()
	type is struct{ unset, transactional, probes, raises, runsAgain, speaksForAll, claimsFirst, claimsWithLease bool }
	for policy, want := range map[Policy]is{
		Unset:       {unset: true},
		Atomic:      {transactional: true, runsAgain: true, claimsWithLease: true},
		Hold:        {claimsFirst: true, claimsWithLease: true},
		Heal:        {probes: true, claimsFirst: true, claimsWithLease: true},
		Fenced:      {raises: true, runsAgain: true, speaksForAll: true, claimsFirst: true, claimsWithLease: true},
		Keyed:       {runsAgain: true, speaksForAll: true, claimsFirst: true, claimsWithLease: true},
		AtLeastOnce: {runsAgain: true, claimsFirst: true, claimsWithLease: true},
	} {
		got := is{
			policy.IsUnset(), policy.Transactional(), policy.Probes(), policy.Raises(), policy.runsAgain(), policy.speaksForAll(),
			policy.ClaimsFirst(false), policy.ClaimsFirst(true),
		}
		if got != want {
			t.Errorf("%v: %+v, want %+v", policy, got, want)
		}
		if d := policy.OrDefault(); d != policy && (policy != Unset || d != Hold) {
			t.Errorf("%v: the default is %v", policy, d)
		}
	}
}
