package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRule08AtomicWithoutInTx: under policy Atomic only the rollback of the transaction of
// InTx proves that there was no effect. A function that never called InTx may have had an
// effect elsewhere, and its success does not say where.
func TestRule08AtomicWithoutInTx(t *testing.T) {
	type row struct {
		fn      func(ctx context.Context, p *process) error
		verdict store.Verdict
		state   store.State
		tainted bool
	}
	eachInBubble(t, map[string]row{
		"error":                 {func(context.Context, *process) error { return errBoom }, store.Unknown, store.Pending, true},
		"marked":                {func(context.Context, *process) error { return semel.NotCommitted(errBoom) }, store.NotCommitted, store.Pending, false},
		"classified":            {func(context.Context, *process) error { return errors.Join(errBoom, errRefused) }, store.NotCommitted, store.Pending, false},
		"success":               {func(context.Context, *process) error { return nil }, store.Unknown, store.InDoubt, true},
		"InTx, failed, success": {func(ctx context.Context, p *process) error { _ = inTxFails(ctx, p, errBoom); return nil }, store.NotCommitted, store.Pending, false},
		"InTx, failed":          {func(ctx context.Context, p *process) error { return inTxFails(ctx, p, errBoom) }, store.NotCommitted, store.Pending, false},
		"InTx, failed, another error": {func(ctx context.Context, p *process) error {
			return errors.Join(errors.New("after all"), inTxFails(ctx, p, errBoom))
		}, store.NotCommitted, store.Pending, false},
	}, func(t *testing.T, tt row) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Classify: classifies}).Call(me, "k", "in")
		got := do(t.Context(), p, call, func(ctx context.Context) (string, error) { return "v", tt.fn(ctx, p) })
		got.wantRunNow(t, tt.verdict, tt.state)
		check.Equal(t, semel.VerdictOf(got.err), tt.verdict, "VerdictOf(%v)", got.err)
		check.Equal(t, wantState(t, mem, call, tt.state).Tainted, tt.tainted, "the record is tainted")
		if tt.state == store.InDoubt {
			do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
		}
	})
}

// TestRule08PanicUnderAtomic: a panic proves as much as an error does.
func TestRule08PanicUnderAtomic(t *testing.T) {
	eachInBubble(t, map[string]bool{"before InTx": false, "in InTx": true}, func(t *testing.T, inTx bool) {
		p, mem := solo(t, semel.Options{})
		call := atomicCallOf("k")
		func() {
			defer func() { _ = recover() }()
			do(t.Context(), p, call, func(ctx context.Context) (string, error) {
				if inTx {
					_, _ = semel.InTx(ctx, p.Engine, func(context.Context, *memory.Tx) (string, error) { panic(errBoom) })
				}
				panic(errBoom)
			})
		}()
		if r := wantState(t, mem, call, store.Pending); r.Tainted == inTx {
			t.Errorf("the record is tainted: %v, want %v", r.Tainted, !inTx)
		}
	})
}

// TestSuccessWithoutInTxRaisesAnAlarm: the alarm names the programming error.
func TestSuccessWithoutInTxRaisesAnAlarm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		do(t.Context(), p, atomicCallOf("k"), returns("v")).wantErr(t, semel.ErrOutcomeUnknown)
		p.seen.want(t, event.InDoubt)
		for _, e := range p.seen.all() {
			if e.Kind == event.InDoubt && !strings.Contains(e.Err.Error(), "InTx") {
				t.Errorf("the alarm is about %v, want it to name InTx", e.Err)
			}
		}
	})
}

func inTxFails(ctx context.Context, p *process, err error) error {
	_, err = semel.InTx(ctx, p.Engine, func(context.Context, *memory.Tx) (string, error) { return "", err })
	return err
}

// TestWorkerSuccessWithoutInTx: the success of a task under policy Atomic that never
// called InTx is not recorded together with those of others.
func TestWorkerSuccessWithoutInTx(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", retried(semel.Atomic()))
		p, mem := owned(t, op)
		call := queued(t, p, op, "k")[0]
		a := dequeued(t, p, op, 1)[0]
		rest := adapter.CompleteMany(t.Context(), p, []*adapter.Completion{{Attempt: a, Value: "v"}})
		if len(rest) != 1 {
			t.Fatalf("CompleteMany has settled it")
		}
		answerOf(a.End("v", nil)).wantRunNow(t, store.Unknown, store.InDoubt)
		wantState(t, mem, call, store.InDoubt)
	})
}

// TestAdapterRejectsWithoutInTx: an answer that claims no effect needs no transaction.
func TestAdapterRejectsWithoutInTx(t *testing.T) {
	eachInBubble(t, map[string]bool{"refuses": true, "claims an effect": false}, func(t *testing.T, refuses bool) {
		p, mem := solo(t, semel.Options{})
		a := begin(t, p, atomicCallOf("k"))
		a.AdaptWith(adapts{refuses: refuses})
		end := answerOf(a.End("refused", nil))
		if refuses {
			end.want(t, "refused", false)
			wantState(t, mem, atomicCallOf("k"), store.Succeeded)
			return
		}
		end.wantErr(t, semel.ErrOutcomeUnknown)
		wantState(t, mem, atomicCallOf("k"), store.InDoubt)
	})
}
