package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// lostReplyStore is a store that ends a transaction while its function still runs, as
// a database does with one that has been silent for too long.
type lostReplyStore struct {
	*memory.Store

	meanwhile func() // once, after the transaction has been ended
}

var errNoReply = errors.New("terminated by the server")

func (s *lostReplyStore) Atomic(ctx context.Context, id store.ID, hold bool, run runInTx) (store.Verdict, error) {
	if s.meanwhile == nil {
		return s.Store.Atomic(ctx, id, hold, run)
	}
	meanwhile := s.meanwhile
	s.meanwhile = nil
	verdict, err := s.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		_, err := run(ctx, tx, current)
		return nil, errors.Join(errNoReply, err)
	})
	meanwhile()
	return verdict, err
}

// TestSupersededLeaderReturnsTheNewOutcome: the database has ended the
// transaction, and another process may have run the operation since. The leader
// returns that outcome.
func TestSupersededLeaderReturnsTheNewOutcome(t *testing.T) {
	t.Parallel()
	for name, fnErr := range map[string]error{"unawares": nil, "by an error of its own": errors.New("connection gone")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem, eyes := memory.New(memory.Options{}), new(seen)
				winner := start(t, mem, semel.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				run := func(e *semel.Engine[*memory.Tx], v string, err error) (string, bool, error) {
					return semel.DoTx(t.Context(), e, call, func(context.Context, *memory.Tx) (string, error) { return v, err })
				}
				engine, err := semel.New(&lostReplyStore{mem, func() {
					if _, _, err := run(winner.Engine, "winner", nil); err != nil {
						t.Errorf("the winner: %v", err)
					}
				}}, semel.Options{Survive: store.NoFailure, Observer: eyes})
				if err != nil {
					t.Fatal(err)
				}
				v, replayed, err := run(engine, "silenced", fnErr)
				if v != "winner" || !replayed || err != nil {
					t.Errorf("got %q, replayed %v, %v, want the winner's", v, replayed, err)
				}
				eyes.want(t, semel.EventFenced)
				if err := engine.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// TestInterruptedLeaderReportsNotCommitted if no other process has run the
// operation.
func TestInterruptedLeaderReportsNotCommitted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		engine, err := semel.New(&lostReplyStore{memory.New(memory.Options{}), func() {}}, semel.Options{Survive: store.NoFailure})
		if err != nil {
			t.Fatal(err)
		}
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		run := func() (string, bool, error) {
			return semel.DoTx(t.Context(), engine, call, func(context.Context, *memory.Tx) (string, error) { return "v", nil })
		}
		if _, _, err := run(); semel.VerdictOf(err) != store.NotCommitted || !errors.Is(err, semel.ErrUnavailable) {
			t.Errorf("got %v, want NotCommitted and ErrUnavailable", err)
		}
		if v, replayed, err := run(); v != "v" || replayed || err != nil {
			t.Errorf("again: %q, replayed %v, %v, want a first run", v, replayed, err)
		}
		if err := engine.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
