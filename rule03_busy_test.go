package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRule03BusyAfterALostReply: a claim whose reply was lost, and that blocks its
// own repetition, does not make the caller its own follower.
func TestRule03BusyAfterALostReply(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"told at once": 0, "waiting": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, _ := solo(t, semel.Options{})
				call := plain("op", semel.OperationOptions[string]{Wait: wait}).Call(me, "k", "in")
				p.wire.on(func(r request) fault {
					switch {
					case r.kind == swapCall && r.n == 1:
						return fault{after: errCut}
					case r.kind == swapCall && r.n == 2:
						return fault{busy: true}
					default:
						return fault{}
					}
				})
				do(t.Context(), p, call, returns("v")).want(t, "v", false)
				do(t.Context(), p, call, never(t)).want(t, "v", true)
			})
		})
	}
}

// slowReplyStore is a store whose commits are answered late.
type slowReplyStore struct{ *memory.Store }

func (s slowReplyStore) Atomic(ctx context.Context, id store.ID, hold bool, run runInTx) (store.Verdict, error) {
	verdict, err := s.Store.Atomic(ctx, id, hold, run)
	pass(lease / 2)
	return verdict, err
}

// TestOwnOutcomeIsNotALostLease: a heartbeat that finds the attempt's own outcome,
// whose answer is still on its way, has lost nothing.
func TestOwnOutcomeIsNotALostLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		eyes := new(seen)
		engine, err := semel.New(slowReplyStore{memory.New(memory.Options{})}, semel.Options{Survive: store.NoFailure, Observer: eyes})
		if err != nil {
			t.Fatal(err)
		}
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: lease}).Call(me, "k", "in")
		_, _, err = semel.Do(t.Context(), engine, call, func(ctx context.Context) (string, error) {
			v, err := semel.InTx(ctx, engine, func(context.Context, *memory.Tx) (string, error) { return "v", nil })
			return v, errors.Join(err, context.Cause(ctx))
		})
		if err != nil {
			t.Errorf("got %v, want its success", err)
		}
		eyes.want(t, semel.EventSucceeded)
		eyes.wantNone(t, semel.EventLeaseLost, semel.EventAfterOutcome)
		if err := engine.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
