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

func atomicCallOf(key string) semel.Call {
	return plain("op", semel.OperationOptions[string]{Policy: semel.Atomic()}).Call(me, key, "in")
}

// TestInTxDecidesTheOutcome: what the function of Do returns afterwards changes
// nothing, and is seen.
func TestInTxDecidesTheOutcome(t *testing.T) {
	eachInBubble(t, map[string]error{"another value": nil, "an error": errBoom, "a final error": semel.Final(errBoom)}, func(t *testing.T, after error) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.Atomic()})
		a := do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			if _, err := semel.InTx(ctx, p.Engine, puts("e", "v")); err != nil {
				return "", err
			}
			return "something else", after
		})
		a.want(t, "v", false)
		do(t.Context(), p, call, never(t)).want(t, "v", true)
		wantState(t, p.mem, call, store.Succeeded)
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
			v, err := semel.InTx(ctx, p.Engine, func(ctx context.Context, _ *memory.Tx) (string, error) {
				refused(ctx, p, "Attempt") // inside itself
				return "v", nil
			})
			refused(ctx, p, "Attempt") // after the outcome
			return v, err
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
		p, other, call := pairCall(t, s.o)
		s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			p.crash()
			pass(2 * lease)
			s.ask(t.Context(), other, call, puts("winner", "winner")).want(t, "winner", false)
			p.faults.Decide(nil)
			return puts("zombie", "zombie")(ctx, tx)
		}).want(t, "winner", true)
		wantEffect(t, p.mem, "zombie", false)
		wantEffect(t, p.mem, "winner", true)
		p.seen.want(t, event.LeaseLost, event.Fenced)
		p.seen.wantNone(t, event.Conflict)
	})
}

// TestInlineFindsARecord: its writes are rolled back, and it answers from the
// current record, if it can read that. (The exclusive right excludes other transactions,
// but not a claim of another program version that runs the operation leased.)
func TestInlineFindsARecord(t *testing.T) {
	eachInBubble(t, map[string]bool{"readable": true, "unreadable": false}, func(t *testing.T, readable bool) {
		p, other, mem := pair(t, semel.Options{})
		a := doTx(t.Context(), p, theCall, func(ctx context.Context, tx *memory.Tx) (string, error) {
			do(t.Context(), other, theCall, returns("winner")).want(t, "winner", false)
			p.faults.Decide(failIf(fault{Before: errCut}, func(r request) bool { return r.Method == "Get" && !readable }))
			return puts("zombie", "zombie")(ctx, tx)
		})
		wantEffect(t, mem, "zombie", false)
		if !readable {
			a.wantErr(t, semel.ErrUnavailable, errCut)
			return
		}
		a.want(t, "winner", true)
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

// TestSupersededLeaderReturnsTheNewOutcome: the database has ended the transaction while its
// function still ran, as it does with one that has been silent for too long, and another process
// has run the operation since.
func TestSupersededLeaderReturnsTheNewOutcome(t *testing.T) {
	eachInBubble(t, map[string]error{"unawares": nil, "by an error of its own": errors.New("connection gone")}, func(t *testing.T, fnErr error) {
		leader, winner, _ := pair(t, semel.Options{})
		meanwhile := func() { doTx(t.Context(), winner, theCall, puts("e", "winner")).want(t, "winner", false) }
		leader.faults.Decide(commits(fault{Rollback: errors.New("terminated by the server"), Reply: meanwhile}))
		a := doTx(t.Context(), leader, theCall, func(context.Context, *memory.Tx) (string, error) { return "silenced", fnErr })
		a.want(t, "winner", true)
		leader.seen.want(t, event.Fenced)
	})
}

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
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.Atomic(), Classify: classifies})
		got := do(t.Context(), p, call, func(ctx context.Context) (string, error) { return "v", tt.fn(ctx, p) })
		got.wantRunNow(t, tt.verdict, tt.state)
		check.Equal(t, semel.VerdictOf(got.err), tt.verdict, "VerdictOf(%v)", got.err)
		check.Equal(t, wantState(t, p.mem, call, tt.state).Tainted, tt.tainted, "the record is tainted")
		if tt.state == store.InDoubt { // and the alarm names the programming error
			alarm := p.seen.last(event.InDoubt)
			if alarm.Err == nil || !strings.Contains(alarm.Err.Error(), "InTx") {
				t.Errorf("the alarm is about %v, want it to name InTx", alarm.Err)
			}
			do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
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
