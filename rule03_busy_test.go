package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
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
				p.faults.Decide(func(r request) fault {
					switch {
					case r.Method == "Swap" && r.MethodN == 1:
						return fault{After: errCut}
					case r.Method == "Swap" && r.MethodN == 2:
						return fault{Busy: true}
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

// TestOwnOutcomeIsNotALostLease: a heartbeat that finds the attempt's own outcome,
// whose answer is still on its way, has lost nothing.
func TestOwnOutcomeIsNotALostLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.faults.Decide(everyCommit(fault{Reply: func() { pass(lease / 2) }}))
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: lease}).Call(me, "k", "in")
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			v, err := semel.InTx(ctx, p.Engine, func(context.Context, *memory.Tx) (string, error) { return "v", nil })
			return v, errors.Join(err, context.Cause(ctx))
		}).want(t, "v", false)
		p.seen.want(t, event.Succeeded)
		p.seen.wantNone(t, event.LeaseLost, event.AfterOutcome)
	})
}
