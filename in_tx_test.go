package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func atomicCallOf(key string) semel.Call {
	return plain("op", semel.OperationOptions[string]{Policy: semel.Atomic()}).Call(me, key, "in")
}

// TestInTxAgainAfterARollback: the attempt continues after a rollback.
func TestInTxAgainAfterARollback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := atomicCallOf("k")
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			_, err := semel.InTx(ctx, p.Engine, failsAfter(errBoom))
			check.ErrorIs(t, err, errBoom, "InTx")
			wantState(t, mem, call, store.InProgress)
			return semel.InTx(ctx, p.Engine, puts("second", "v"))
		}).want(t, "v", false)
		wantEffect(t, mem, "e", false)
		wantEffect(t, mem, "second", true)
	})
}

// TestInTxAfterTheOutcome is refused: the operation has succeeded.
func TestInTxAfterTheOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := atomicCallOf("k")
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			v, err := semel.InTx(ctx, p.Engine, puts("first", "v"))
			if err != nil {
				return "", err
			}
			_, err = semel.InTx(ctx, p.Engine, puts("second", "w"))
			wantField(t, err, "Attempt")
			wantState(t, mem, call, store.Succeeded)
			return v, nil
		}).want(t, "v", false)
		wantEffect(t, mem, "second", false)
	})
}

// TestInTxDecidesTheOutcome: what the function of Do returns afterwards changes
// nothing, and is seen.
func TestInTxDecidesTheOutcome(t *testing.T) {
	eachInBubble(t, map[string]error{"another value": nil, "an error": errBoom, "a final error": semel.Final(errBoom)}, func(t *testing.T, after error) {
		p, mem := solo(t, semel.Options{})
		call := atomicCallOf("k")
		a := do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			if _, err := semel.InTx(ctx, p.Engine, puts("e", "v")); err != nil {
				return "", err
			}
			return "something else", after
		})
		a.want(t, "v", false)
		do(t.Context(), p, call, never(t)).want(t, "v", true)
		wantState(t, mem, call, store.Succeeded)
		if after != nil {
			p.seen.want(t, event.AfterOutcome)
		}
	})
}

func TestInTxRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, _ := pair(t, semel.Options{})
		refused := func(ctx context.Context, p *process, field string) {
			t.Helper()
			_, err := semel.InTx(ctx, p.Engine, func(ctx context.Context, _ *memory.Tx) (string, error) { return never(t)(ctx) })
			wantField(t, err, field)
		}
		refused(t.Context(), p, "ctx") // outside
		var gone context.Context
		do(t.Context(), p, atomicCallOf("k"), func(ctx context.Context) (string, error) {
			refused(ctx, other, "ctx") // another engine
			gone = ctx
			return semel.InTx(ctx, p.Engine, func(ctx context.Context, _ *memory.Tx) (string, error) {
				refused(ctx, p, "Attempt") // inside itself
				return "v", nil
			})
		}).want(t, "v", false)
		refused(gone, p, "Attempt") // after the end
		do(t.Context(), p, plain("hold", semel.OperationOptions[string]{}).Call(me, "k", "in"), func(ctx context.Context) (string, error) {
			refused(ctx, p, "Policy")
			return "v", nil
		}).want(t, "v", false)
		doTx(t.Context(), p, plain("inline", semel.OperationOptions[string]{}).Call(me, "k", "in"), func(ctx context.Context, _ *memory.Tx) (string, error) {
			refused(ctx, p, "ctx") // an inline run has no attempt to end
			return "v", nil
		}).want(t, "v", false)
	})
}

// TestInTxOfAZombie: its writes are rolled back, and its answer is the current
// outcome.
func TestInTxOfAZombie(t *testing.T) {
	eachLeasedMode(t, func(t *testing.T, s txMode) {
		p, other, mem := pair(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			p.crash()
			pass(2 * lease)
			s.ask(t.Context(), other, call, puts("winner", "winner")).want(t, "winner", false)
			p.faults.Decide(nil)
			return puts("zombie", "zombie")(ctx, tx)
		}).want(t, "winner", true)
		wantEffect(t, mem, "zombie", false)
		wantEffect(t, mem, "winner", true)
		p.seen.want(t, event.LeaseLost, event.Fenced)
		p.seen.wantNone(t, event.Conflict)
	})
}

// TestInlineFindsARecord: its writes are rolled back, and it answers from the
// current record. (The exclusive right excludes other transactions, but not a claim
// of another program version that runs the operation leased.)
func TestInlineFindsARecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, mem := pair(t, semel.Options{})
		doTx(t.Context(), p, theCall, func(ctx context.Context, tx *memory.Tx) (string, error) {
			do(t.Context(), other, theCall, returns("winner")).want(t, "winner", false)
			return puts("zombie", "zombie")(ctx, tx)
		}).want(t, "winner", true)
		wantEffect(t, mem, "zombie", false)
		p.seen.want(t, event.Fenced)
	})
}

// TestInlineRetriesWhenTheRecordIsGone: a claim was made and released meanwhile, so
// the function runs again after a rollback.
func TestInlineRetriesWhenTheRecordIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, mem := pair(t, semel.Options{})
		runs := 0
		doTx(t.Context(), p, theCall, func(ctx context.Context, tx *memory.Tx) (string, error) {
			if runs++; runs == 1 {
				do(t.Context(), other, theCall, fails(semel.NotCommitted(errBoom)))
				return puts("first", "first")(ctx, tx)
			}
			return puts("second", "second")(ctx, tx)
		}).want(t, "second", false)
		wantEffect(t, mem, "first", false)
		wantEffect(t, mem, "second", true)
		p.faults.Decide(nil)
	})
}

// TestInlineCannotReadTheOtherRecord.
func TestInlineCannotReadTheOtherRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, _ := pair(t, semel.Options{})
		doTx(t.Context(), p, theCall, func(ctx context.Context, tx *memory.Tx) (string, error) {
			do(t.Context(), other, theCall, returns("winner")).want(t, "winner", false)
			p.faults.Decide(failOn("Get", fault{Before: errCut}))
			return "zombie", nil
		}).wantErr(t, semel.ErrUnavailable, errCut)
	})
}

func TestTxOf(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{})
		other := start(t, mem, semel.Options{})
		if _, ok := semel.TxOf(t.Context(), p.Engine); ok {
			t.Error("TxOf outside of a transaction has one")
		}
		s.ask(t.Context(), p, plain("op", s.o).Call(me, "k", "in"), func(ctx context.Context, tx *memory.Tx) (string, error) {
			if got, ok := semel.TxOf(ctx, p.Engine); !ok || got != tx {
				t.Errorf("TxOf = %v, %v, want the transaction", got, ok)
			}
			if _, ok := semel.TxOf(ctx, other.Engine); ok {
				t.Error("TxOf of another engine has one")
			}
			return "v", nil
		}).want(t, "v", false)
	})
}

// TestTransactionThatEndsWithItsContext: the transaction continues when the caller
// cancels, and the function's result decides.
func TestTransactionThatEndsWithItsContext(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{})
		s.o.OnError = semel.Keep
		call := plain("op", s.o).Call(me, "k", "in")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := s.ask(ctx, p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			_, _ = puts("e", "v")(ctx, tx)
			<-ctx.Done()
			return "", ctx.Err()
		})
		a.wantErr(t, context.DeadlineExceeded)
		check.Equal(t, semel.VerdictOf(a.err), store.NotCommitted, "VerdictOf (it is rolled back)")
		wantEffect(t, mem, "e", false)
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}
