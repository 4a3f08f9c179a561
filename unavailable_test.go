package semel_test

import (
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// TestTransactionThatFailsIsUnavailable: the store has failed, and not the
// operation. Nothing was done, and the same key may be tried again.
func TestTransactionThatFailsIsUnavailable(t *testing.T) {
	noSpace := errors.New("no space left")
	for _, f := range []fault{{Name: "begin", Before: noSpace}, {Name: "commit", Rollback: noSpace}} {
		t.Run(f.Name, func(t *testing.T) {
			eachTxMode(t, func(t *testing.T, s txMode) {
				s.o.OnError = semel.Keep
				p, mem := solo(t, semel.Options{})
				call := plain("op", s.o).Call(me, "k", "in")
				p.faults.Decide(everyCommit(f))
				a := s.ask(t.Context(), p, call, puts("e", "v"))
				a.wantErr(t, semel.ErrUnavailable, noSpace)
				if errors.Is(a.err, semel.ErrOutcomeUnknown) || semel.RetryAfter(a.err) == 0 {
					t.Errorf("got %v, want one that says when to retry", a.err)
				}
				wantEffect(t, mem, "e", false)
				p.faults.Decide(nil)
				s.ask(t.Context(), start(t, mem, semel.Options{}), call, puts("e", "v")).want(t, "v", false)
				wantState(t, mem, call, store.Succeeded)
			})
		})
	}
}
