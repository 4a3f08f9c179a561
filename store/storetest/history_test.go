package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Each violation of a history is found, and none in correct histories.
func TestHistoryIsJudged(t *testing.T) {
	t.Parallel()
	at := func(s store.State, attempt uint32) store.Record {
		return store.Record{Token: store.Token{State: s, Attempt: attempt, Owner: 1}}
	}
	ok := func(value string) answer { return answer{value: value, after: 1} }
	failed := answer{err: &semel.Failure{Message: "no"}}
	released := func(before, after int) answer {
		return answer{
			before: before, after: after,
			err: &semel.AttemptError{Verdict: store.NotCommitted, State: store.Pending, Err: errors.New("no")},
		}
	}
	unknown := answer{err: semel.ErrOutcomeUnknown, after: 1}
	for _, test := range []struct {
		name string
		h    history
		want []string
	}{
		{"no answers", history{}, nil},
		{"answers ok", history{answers: []answer{ok("a"), ok("a")}, effects: 1, record: at(store.Succeeded, 1)}, nil},
		{"answers failed", history{answers: []answer{failed, failed}, record: at(store.Failed, 1)}, nil},
		{"released, then ok", history{answers: []answer{released(0, 0), ok("a")}, effects: 1, record: at(store.Succeeded, 2)}, nil},
		{"unknown, then in doubt", history{answers: []answer{unknown, {err: semel.ErrInDoubt}}, effects: 1, record: at(store.InDoubt, 1)}, nil},
		{"once per attempt", history{answers: []answer{unknown, ok("b")}, effects: 2, record: at(store.Succeeded, 2), mayRepeatEffect: true}, nil},

		{
			"two effects",
			history{answers: []answer{unknown, ok("b")}, effects: 2, record: at(store.Succeeded, 2)},
			[]string{"one effect per key"},
		},
		{
			"more than one per attempt",
			history{answers: []answer{ok("b")}, effects: 3, record: at(store.Succeeded, 2), mayRepeatEffect: true},
			[]string{"one effect per key"},
		},
		{
			"ok, and no effect",
			history{answers: []answer{ok("a")}, record: at(store.Succeeded, 1)},
			[]string{"answer ok: stored with an effect"},
		},
		{
			"ok, and in doubt",
			history{answers: []answer{ok("a")}, effects: 1, record: at(store.InDoubt, 1)},
			[]string{"answer ok: stored with an effect"},
		},
		{
			"failed, and an effect",
			history{answers: []answer{failed}, effects: 1, record: at(store.Failed, 1)},
			[]string{"answer failed: no effect"},
		},
		{
			"failed, and may be tried again",
			history{answers: []answer{failed}, record: at(store.Pending, 1)},
			[]string{"answer failed: no effect"},
		},
		{
			"not committed, and an effect",
			history{answers: []answer{released(0, 1)}, effects: 1, record: at(store.Pending, 1)},
			[]string{"answer not committed: no effect"},
		},
		{
			"different answers",
			history{answers: []answer{ok("a"), ok("b")}, effects: 1, record: at(store.Succeeded, 1)},
			[]string{"all ok answers are equal"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.h.violations(); !slices.Equal(got, test.want) {
				t.Errorf("broken() = %q, want %q\n%v", got, test.want, test.h)
			}
		})
	}
}
