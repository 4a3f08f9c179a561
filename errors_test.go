package semel_test

import (
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// TestReplayedFailures: the failure is marked as replayed for every caller but the
// first.
func TestReplayedFailures(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		for i := range 3 {
			a := d.ask(t.Context(), p, call, fails(semel.Final(errBoom)))
			a.wantFailure(t, "boom")
			if got := semel.Replayed(a.err); got != (i > 0) || a.err.Error() != "boom" {
				t.Errorf("asker %d: Replayed(%v) = %v", i, a.err, got)
			}
		}
		if semel.Replayed(nil) || semel.Replayed(errBoom) || semel.Replayed(&semel.Failure{}) {
			t.Error("Replayed of what is no replay")
		}
	})
}

// TestErrorTexts: the text names first what happened to the key, then the cause.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	tests := map[string]error{
		"semel: op did not happen and may be tried again with the same key: boom":                                                      &semel.AttemptError{Operation: "op", Verdict: store.NotCommitted, State: store.Pending, Err: errBoom},
		"semel: op may or may not have happened: boom":                                                                                 &semel.AttemptError{Operation: "op", State: store.InProgress, Err: errBoom},
		"semel: op has an unknown outcome and is in doubt (mark errors that prove that nothing was committed with NotCommitted): boom": &semel.AttemptError{Operation: "op", State: store.InDoubt, Err: errBoom},
		"semel: Key is missing": &semel.FieldError{Field: "Key", Reason: "is missing"},
		"c: m":                  &semel.Failure{Code: "c", Message: "m"},
		"m":                     &semel.Failure{Message: "m"},
		"boom":                  semel.Final(errBoom),
	}
	for want, err := range tests {
		if got := err.Error(); got != want {
			t.Errorf("%T says %q, want %q", err, got, want)
		}
	}
	if semel.VerdictOf(nil) != store.Committed || semel.VerdictOf(errBoom) != store.Unknown || semel.RetryAfter(nil) != 0 {
		t.Error("VerdictOf or RetryAfter of no error and of a stranger's")
	}
}

func TestNamesOfCallsAndOperations(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{})
	if op.Name() != "op" || op.Call(me, "k", "in").Operation() != "op" {
		t.Errorf("the operation is called %q", op.Name())
	}
	var none semel.Call
	if none.Operation() != "" || none.Key() != "" || none.Scope() != (semel.Scope{}) || none.ID() != (store.ID{}) {
		t.Error("the zero Call names something")
	}
}
