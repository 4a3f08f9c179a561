package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// failCall makes the k-th call of the store fail with f, and all others succeed.
func failCall(k int, f fault) func(request) fault {
	n := 0
	return func(request) fault {
		if n++; n == k {
			return f
		}
		return fault{}
	}
}

// failWriteCall is failCall, except that reads are never Busy or rejected, as in
// real stores.
func failWriteCall(k int, f fault) func(request) fault {
	n := failCall(k, f)
	return func(r request) fault {
		f := n(r)
		if r.Method == "Get" {
			f.Busy, f.Result = false, nil
		}
		return f
	}
}

// everyFault is every way in which one call can go wrong.
func everyFault() map[string]fault {
	return map[string]fault{
		"cut before it applied":   {Before: errCut},
		"cut after it applied":    {After: errCut},
		"no answer, not applied":  {Hang: true},
		"no answer, applied":      {Mute: true},
		"answer and error":        {Extra: errCut},
		"busy":                    {Busy: true},
		"refused":                 {Result: &store.SwapResult{Err: errCut}},
		"run twice":               {Twice: true},
		"transaction still going": commitDropped(),
	}
}

// faultRun is one operation, run through one entry point, while one call fails.
type faultRun struct {
	d    entryPoint
	p    *process
	mem  *memory.Store
	call semel.Call
	f    fault
	runs int
}

// effect leaves an effect of this run: in the transaction where there is one,
// else at once.
func (tr *faultRun) effect(ctx context.Context) (string, error) {
	tr.runs++
	if tx, ok := semel.TxOf(ctx, tr.p.Engine); ok {
		return "v", tx.Put(fmt.Sprint("e", tr.runs), nil)
	}
	return "v", inTxOf(tr.mem, fmt.Sprint("e", tr.runs))
}

// inTxOf leaves an effect in a transaction of its own.
func inTxOf(mem *memory.Store, name string) error {
	_, err := mem.Atomic(context.Background(), store.ID{}, false,
		func(_ context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			return nil, tx.Put(name, nil)
		})
	return err
}

func (tr *faultRun) effects() int {
	n := 0
	for i := range tr.runs {
		if _, ok := tr.mem.Value(fmt.Sprint("e", i+1)); ok {
			n++
		}
	}
	return n
}

// first asks with the patience of a minute: a transaction that cannot even begin
// is waited for as long as its caller waits.
func (tr *faultRun) first(t *testing.T, fn handler) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return tr.d.ask(ctx, tr.p, tr.call, fn)
}

// retry asks in another process until the answer is final, as patient callers do.
func (tr *faultRun) retry(t *testing.T, fn handler) answer {
	t.Helper()
	first := tr.p
	tr.p = start(t, tr.mem, semel.Options{})
	defer func() { tr.p = first }()
	for range 20 {
		a := tr.d.ask(t.Context(), tr.p, tr.call, fn)
		if !errors.Is(a.err, semel.ErrInProgress) && !errors.Is(a.err, semel.ErrUnavailable) {
			return a
		}
		pass(lease)
	}
	t.Error("asking again leads to nothing")
	return answer{}
}

// eachTrial runs test for each door, each fault, and each call that may meet it.
func eachTrial(t *testing.T, test func(t *testing.T, tr *faultRun)) {
	t.Helper()
	t.Parallel()
	for _, d := range entryPoints() {
		for name, f := range everyFault() {
			for k := range 5 {
				t.Run(fmt.Sprintf("%s/%s/%d", d.name, name, k+1), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						p, mem := solo(t, semel.Options{})
						p.faults.Decide(failCall(k+1, f))
						test(t, &faultRun{d: d, p: p, mem: mem, call: plain("op", d.o).Call(me, "k", "in"), f: f})
					})
				})
			}
		}
	}
}

// TestEveryStoreCallMayFail: every reported answer stays true, there is one
// effect, and a retry returns it.
func TestEveryStoreCallMayFail(t *testing.T) {
	eachTrial(t, func(t *testing.T, tr *faultRun) {
		first := tr.first(t, tr.effect)
		verdict, there := semel.VerdictOf(first.err), tr.effects()
		if first.err == nil {
			first.want(t, "v", false)
		}
		if verdict == store.Committed && there != 1 || verdict == store.NotCommitted && there != 0 {
			t.Errorf("verdict %v (%v) with %d effects", verdict, first.err, there)
		}
		if failure, ok := errtype.Find[*semel.Failure](first.err); ok {
			t.Errorf("got the failure %v", failure)
		}
		tr.p.faults.Decide(nil)
		pass(time.Minute)
		last := tr.retry(t, tr.effect)
		if refused := tr.f.Result != nil && errors.Is(last.err, semel.ErrResultUnavailable); !refused {
			last.want(t, "v", last.replayed)
		}
		if first.err == nil && !last.replayed {
			t.Error("a reported success was run again")
		}
		check.Equal(t, tr.effects(), 1, "effects")
		wantState(t, tr.mem, tr.call, store.Succeeded)
	})
}

// TestEveryStoreCallOfAFailureMayFail: a failure is reported only after it has
// been recorded, and then forever.
func TestEveryStoreCallOfAFailureMayFail(t *testing.T) {
	eachTrial(t, func(t *testing.T, tr *faultRun) {
		fn := fails(semel.Final(errBoom))
		first := tr.first(t, fn)
		if _, isFailure := errtype.Find[*semel.Failure](first.err); isFailure {
			wantState(t, tr.mem, tr.call, store.Failed)
		}
		check.Fails(t, first.err, "got success")
		tr.p.faults.Decide(nil)
		pass(time.Minute)
		tr.retry(t, fn).wantFailure(t, "boom")
		wantState(t, tr.mem, tr.call, store.Failed)
	})
}
