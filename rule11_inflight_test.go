package semel_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store/memory"
)

// TestRule11InFlightRequestsRejectNoOther: a request that runs without a record, a
// claim or a held lock does not own its key. While it runs in the same process, the
// request that made the record gets its response, and a request for a key without a
// record is told to retry. Only the wrong request is a mismatch.
func TestRule11InFlightRequestsRejectNoOther(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		options semel.OperationOptions[string]
		run     func(t *testing.T, p *process, c semel.Call, hold <-chan struct{}) answer
	}{
		"optimistic": {optimistic(), func(t *testing.T, p *process, c semel.Call, hold <-chan struct{}) answer {
			return doTx(t.Context(), p, c, func(ctx context.Context, tx *memory.Tx) (string, error) {
				<-hold
				return puts("wrong", "wrong")(ctx, tx)
			})
		}},
		"batch": {semel.OperationOptions[string]{}, func(t *testing.T, p *process, c semel.Call, hold <-chan struct{}) answer {
			v, replayed, err := semel.DoBatch(t.Context(), p.Engine, c, func(context.Context) (string, memory.Batch, error) {
				<-hold
				return "wrong", put("wrong"), nil
			})
			return answer{v, replayed, err}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
				op := plain("op", row.options)
				right, wrong := op.Call(me, "k", "right"), op.Call(me, "k", "wrong")
				hold := make(chan struct{})
				inFlight := later(func() answer { return row.run(t, p, wrong, hold) })
				synctest.Wait()
				doTx(t.Context(), p, right, neverTx(t)).wantErr(t, semel.ErrInProgress)
				doTx(t.Context(), other, right, puts("right", "right")).want(t, "right", false)
				doTx(t.Context(), p, right, neverTx(t)).want(t, "right", true)
				do(t.Context(), p, right, never(t)).want(t, "right", true)
				doTx(t.Context(), p, op.Call(me, "k", "third"), neverTx(t)).wantErr(t, semel.ErrMismatch)
				close(hold)
				(<-inFlight).wantErr(t, semel.ErrMismatch)
				wantEffect(t, mem, "wrong", false)
				wantEffect(t, mem, "right", true)
			})
		})
	}
}

// TestRule11LeadersRejectOtherFingerprints: a claim and a held lock reject another request
// at once, without the store.
func TestRule11LeadersRejectOtherFingerprints(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		right, wrong := op.Call(me, "k", "right"), op.Call(me, "k", "wrong")
		doTx(t.Context(), p, right, func(ctx context.Context, tx *memory.Tx) (string, error) {
			doTx(context.Background(), p, wrong, neverTx(t)).wantErr(t, semel.ErrMismatch)
			return puts("e", "v")(ctx, tx)
		}).want(t, "v", false)
		claimed := op.Call(me, "claimed", "right")
		do(t.Context(), p, claimed, func(context.Context) (string, error) {
			do(context.Background(), p, op.Call(me, "claimed", "wrong"), never(t)).wantErr(t, semel.ErrMismatch)
			return "v", nil
		}).want(t, "v", false)
	})
}
