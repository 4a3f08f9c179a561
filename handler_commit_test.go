package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// errEndedItself is what a store says when a function has committed the
// transaction that was only lent to it.
var errEndedItself = errors.New("the function ended the transaction")

// errAfterwards is what a function returns that has committed and then failed.
var errAfterwards = errors.New("afterwards")

// selfCommittingStore is a store under functions that commit by themselves: their
// writes are there, and the last change was never made.
type selfCommittingStore struct{ *memory.Store }

func (s selfCommittingStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	ran := false
	verdict, err := s.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		change, err := run(ctx, tx, current)
		if ran = change != nil || errors.Is(err, errAfterwards) || errors.Is(err, errEndedItself); !ran {
			return nil, err
		}
		return nil, nil
	})
	if ran && err == nil {
		return store.Committed, errEndedItself
	}
	return verdict, err
}

// startSelfCommitting starts a process over s.
func startSelfCommitting(t *testing.T, s store.TxStore[*memory.Tx]) *process {
	t.Helper()
	p := &process{Engine: check.Must(semel.New(s, semel.Options{Survive: store.NoFailure}))(t)}
	t.Cleanup(func() { check.NoError(t, p.Close(context.Background())) })
	return p
}

// TestHandlerCommitsItsTransaction: the caller learns what happened, and the
// function never runs again, although its effect was committed without the record.
func TestHandlerCommitsItsTransaction(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p := startSelfCommitting(t, selfCommittingStore{memory.New(memory.Options{})})
		call := plain("op", s.o).Call(me, "k", "in")
		s.ask(t.Context(), p, call, puts("effect", "v")).want(t, "v", false)
		s.ask(t.Context(), p, call, neverTx(t)).want(t, "v", true)
	})
}

// TestHandlerCommitsItsTransactionAndFails: the effect has happened. The caller
// gets an error that says so, and later callers learn that it succeeded and that
// the result is not available.
func TestHandlerCommitsItsTransactionAndFails(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p := startSelfCommitting(t, selfCommittingStore{memory.New(memory.Options{})})
		call := plain("op", s.o).Call(me, "k", "in")
		a := s.ask(t.Context(), p, call, failsAfter(errAfterwards))
		a.wantErr(t, errAfterwards)
		check.Equal(t, semel.VerdictOf(a.err), store.Committed, "verdict")
		check.ErrorIs(t, s.ask(t.Context(), p, call, neverTx(t)).err, semel.ErrResultUnavailable, "the second call")
	})
}
