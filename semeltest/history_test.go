package semeltest

import (
	"errors"
	"slices"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// The judge of histories finds each thing that can be wrong with one, and
// nothing in those that are right.
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
		{"nobody was told anything", history{}, nil},
		{"told ok", history{answers: []answer{ok("a"), ok("a")}, effects: 1, stands: at(store.Succeeded, 1)}, nil},
		{"told failed", history{answers: []answer{failed, failed}, stands: at(store.Failed, 1)}, nil},
		{"released, then ok", history{answers: []answer{released(0, 0), ok("a")}, effects: 1, stands: at(store.Succeeded, 2)}, nil},
		{"unknown, then in doubt", history{answers: []answer{unknown, {err: semel.ErrInDoubt}}, effects: 1, stands: at(store.InDoubt, 1)}, nil},
		{"once per attempt", history{answers: []answer{unknown, ok("b")}, effects: 2, stands: at(store.Succeeded, 2), repeats: true}, nil},

		{
			"two effects",
			history{answers: []answer{unknown, ok("b")}, effects: 2, stands: at(store.Succeeded, 2)},
			[]string{"one effect per key"},
		},
		{
			"more than one per attempt",
			history{answers: []answer{ok("b")}, effects: 3, stands: at(store.Succeeded, 2), repeats: true},
			[]string{"one effect per key"},
		},
		{
			"ok, and no effect",
			history{answers: []answer{ok("a")}, stands: at(store.Succeeded, 1)},
			[]string{"told ok: it stands"},
		},
		{
			"ok, and in doubt",
			history{answers: []answer{ok("a")}, effects: 1, stands: at(store.InDoubt, 1)},
			[]string{"told ok: it stands"},
		},
		{
			"failed, and an effect",
			history{answers: []answer{failed}, effects: 1, stands: at(store.Failed, 1)},
			[]string{"told failed: no effect"},
		},
		{
			"failed, and may be tried again",
			history{answers: []answer{failed}, stands: at(store.Pending, 1)},
			[]string{"told failed: no effect"},
		},
		{
			"not committed, and an effect",
			history{answers: []answer{released(0, 1)}, effects: 1, stands: at(store.Pending, 1)},
			[]string{"told not committed: no effect"},
		},
		{
			"different answers",
			history{answers: []answer{ok("a"), ok("b")}, effects: 1, stands: at(store.Succeeded, 1)},
			[]string{"all ok answers are equal"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.h.broken(); !slices.Equal(got, test.want) {
				t.Errorf("broken() = %q, want %q\n%v", got, test.want, test.h)
			}
		})
	}
}
