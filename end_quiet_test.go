package semel_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// TestEndQuietReturnsNothingForOwnSuccess: it returns nothing after a success of
// its own attempt, and otherwise the same as End.
func TestEndQuietReturnsNothingForOwnSuccess(t *testing.T) {
	t.Parallel()
	shows := semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) { return "shown", true, nil })
	for name, row := range map[string]struct {
		policy semel.Policy
		err    error
		resist bool // another caller heals the record meanwhile
		value  string
		want   string
		fails  bool
	}{
		"its own success":          {policy: semel.Hold()},
		"a value that JSON alters": {policy: semel.Hold(), value: "m\xff", want: "m\ufffd"},
		"an error":                 {policy: semel.Hold(), err: errBoom, fails: true},
		"an error, and evidence":   {policy: shows, err: errBoom, want: "shown"},
		"a success of others":      {policy: shows, resist: true, want: "shown"},
		"an error that is proven":  {policy: semel.Hold(), err: semel.NotCommitted(errBoom), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, mem := solo(t, semel.Options{})
			op := semel.Define("op", semel.OperationOptions[int]{Policy: row.policy})
			call := op.Call(me, "k", 1)
			a := begin(t, p, call)
			if row.resist {
				do(t.Context(), start(t, mem, semel.Options{}), call, returns("run")).want(t, "shown", true)
			}
			out, err := a.EndQuiet(cmp.Or(row.value, "mine"), row.err)
			if (err != nil) != row.fails || row.fails && !errors.Is(err, errBoom) {
				t.Fatalf("EndQuiet: %v", err)
			}
			var got string
			if out != nil && out.Decode(&got) != nil || got != row.want || (out != nil) != (row.want != "") {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if current := record(t, mem, call); (current.State == store.Succeeded) == row.fails {
				t.Errorf("the current record is %v", current.State)
			}
			if _, err := a.EndQuiet("again", nil); !errors.Is(err, semel.ErrInvalid) {
				t.Errorf("ended twice: %v", err)
			}
		})
	}
}
