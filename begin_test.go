package semel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// begin claims call, and fails the test if that does not lead an attempt.
func begin(t *testing.T, p *process, call semel.Call) *semel.Attempt {
	t.Helper()
	a, out, err := adapter.Begin(t.Context(), p, call)
	if err != nil || out != nil || a == nil {
		t.Fatalf("Begin = %v, %v, %v, want an attempt", a, out, err)
	}
	return a
}

func TestBeginAndEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(semel.ScopeOf("a", "b"), "k", "in")
		a := begin(t, p, call)
		r := wantState(t, mem, call, store.InProgress)
		if a.Number() != 1 || a.Token() != r.Token || a.Context().Err() != nil {
			t.Errorf("attempt %d, token %+v, context %v; want 1, %+v, running", a.Number(), a.Token(), a.Context().Err(), r.Token)
		}
		c := a.Call()
		if c.ID() != call.ID() || c.Key() != "k" || c.Operation() != "op" || c.Scope() != semel.ScopeOf("a", "b") {
			t.Errorf("Call() = %q of %q in %q", c.Key(), c.Operation(), c.Scope().Bytes())
		}
		if of, ok := semel.AttemptOf(a.Context()); !ok || of != a {
			t.Errorf("AttemptOf = %v, %v, want the attempt", of, ok)
		}
		out, err := a.End("v", nil)
		wantOutcome(t, out, err, "v", false)
		check.Fails(t, a.Context().Err(), "the context goes on after End")
		wantField(t, check.Err(a.End("w", nil)), "Attempt")
		a.Abandon() // after End it does nothing
		again, out, err := adapter.Begin(t.Context(), p, call)
		if again != nil {
			t.Error("Begin claims what succeeded")
		}
		wantOutcome(t, out, err, "v", true)
	})
}

func wantOutcome(t *testing.T, out *adapter.Outcome, err error, v string, replayed bool) {
	t.Helper()
	if err != nil || out == nil {
		t.Errorf("got %v, %v, want an outcome", out, err)
		return
	}
	var got string
	if err := out.Decode(&got); err != nil || got != v || out.Replayed != replayed || out.Record.State != store.Succeeded {
		t.Errorf("outcome %q, replayed %v, %v, %v; want %q, replayed %v, Succeeded", got, out.Replayed, out.Record.State, err, v, replayed)
	}
}

func TestAbandon(t *testing.T) {
	eachPolicy(t, func(t *testing.T, pc policyCase) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: pc.p})
		a := begin(t, p, call)
		a.Abandon()
		a.Abandon()
		wantField(t, check.Err(a.End("v", nil)), "Attempt")
		wantAfterAbrupt(t, p, p.mem, call, pc)
	})
}

// TestAdapterEncodes: what an adapter stores instead of what the function returned.
func TestAdapterEncodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.Atomic()})
		a := begin(t, p, call)
		a.AdaptWith(adapts{encode: func(v any) (any, error) {
			if v == "first" {
				return nil, errBoom
			}
			return semel.Raw("<" + v.(string) + ">"), nil
		}})
		check.ErrorIs(t, check.Err(semel.InTx(a.Context(), p.Engine, puts("one", "first"))), errBoom, "InTx")
		wantEffect(t, p.mem, "one", false)
		check.Result(semel.InTx(a.Context(), p.Engine, puts("two", "second")))(t, "second", "InTx")
		out, err := a.End(nil, nil)
		var got semel.Raw
		if err != nil || out.Decode(&got) != nil || string(got) != "<second>" {
			t.Errorf("stored %q, %v, want what the adapter said", got, err)
		}
	})
}

// adapts is an adapter of functions, each of which may be nil.
type adapts struct {
	encode func(v any) (any, error)
	undone func()

	refuses bool
}

func (a adapts) Encode(v any) (any, error) {
	if a.encode == nil {
		return v, nil
	}
	return a.encode(v)
}

func (a adapts) Claims() bool { return !a.refuses }

func (a adapts) Undone() {
	if a.undone != nil {
		a.undone()
	}
}

// TestAdapterUndo: an adapter learns that what it took for the outcome is none.
func TestAdapterUndo(t *testing.T) {
	type row struct {
		commit fault
		swap   fault // of the certificate
		fn     txHandler
		want   int
	}
	eachInBubble(t, map[string]row{
		"committed":        {fn: puts("e", "v")},
		"proven committed": {commit: commitApplied(), fn: puts("e", "v")},
		"function's error": {fn: failsAfter(errBoom), want: 1},
		"refused":          {commit: commitRefused(), fn: puts("e", "v"), want: 1},
		"refuted":          {commit: commitDropped(), fn: puts("e", "v"), want: 1},
		"still under way":  {commit: commitOpen(), fn: puts("e", "v"), want: 1},
		"no answer":        {commit: commitDropped(), swap: fault{Before: errCut}, fn: puts("e", "v"), want: 1},
	}, func(t *testing.T, tt row) {
		p, _ := solo(t, semel.Options{})
		a := begin(t, p, atomicCallOf("k"))
		undone := 0
		a.AdaptWith(adapts{undone: func() { undone++ }})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" {
				return tt.swap
			}
			return commits(tt.commit)(r)
		})
		v, err := semel.InTx(a.Context(), p.Engine, tt.fn)
		if undone != tt.want || (err == nil) != (tt.want == 0) {
			t.Errorf("InTx = %q, %v; undone %d times, want %d", v, err, undone, tt.want)
		}
		p.faults.Decide(nil)
		if tt.commit.Open {
			_ = p.faults.Release()
		}
		_, _ = a.End(v, err)
	})
}

// TestAttemptHasTheClaimedRecord: the attempt has exactly the current record,
// whether the record was new, had an input, or was taken over with a taint.
func TestAttemptHasTheClaimedRecord(t *testing.T) {
	eachInBubble(t, map[string]semel.OperationOptions[string]{
		"without an input":                {Policy: semel.AtLeastOnce()},
		"with an input":                   {Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}},
		"with less to run than its lease": {Policy: semel.AtLeastOnce(), Lease: time.Minute, MaxRun: time.Second},
		"with a time in its key": {
			Policy: semel.AtLeastOnce(), KeyTime: func(string) (time.Time, bool) { return time.Now(), true },
		},
	}, func(t *testing.T, o semel.OperationOptions[string]) {
		call := plain("op", o).Call(semel.ScopeOf("a", "b"), "k", "in")
		p, mem := solo(t, semel.Options{})
		a := begin(t, p, call)
		first := a.Record()
		wantClaimed(t, first, wantState(t, mem, call, store.InProgress))
		check.Must(a.End("v", nil))(t)
		wantClaimed(t, a.Record(), first) // as it was claimed, even after its end

		p, mem = solo(t, semel.Options{})
		first.Due = time.Second
		check.Must(mem.Swap(t.Context(), []store.Change{{To: first}}))(t)
		pass(time.Minute)
		a = begin(t, p, call)
		if second := a.Record(); second.Attempt != 2 || !second.Tainted {
			t.Errorf("taken over it is %+v, want the second attempt, tainted", second)
		}
		wantClaimed(t, a.Record(), wantState(t, mem, call, store.InProgress))
		a.Abandon()
	})
}

func wantClaimed(t *testing.T, got, want store.Record) {
	t.Helper()
	want.Age = 0 // a claim does not read it
	check.NoDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "the record of the attempt")
}

// TestLateClaimIsRejected: a claim that was released before it arrived must not be
// applied. No function ran for it, and no process would end it.
func TestLateClaimIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		claims := 0
		p.faults.Decide(func(r request) fault {
			if r.To() != store.InProgress || claims == 3 {
				return fault{}
			}
			claims++
			if claims == 1 {
				late := slices.Clone(r.Changes)
				time.AfterFunc(500*time.Millisecond, func() { _, _ = mem.Swap(t.Context(), late) })
			}
			return fault{Before: errCut}
		})
		do(t.Context(), p, theCall, returns("v")).wantErr(t, semel.ErrUnavailable)
		pass(time.Minute)
		do(t.Context(), p, theCall, returns("v")).want(t, "v", false)
	})
}

// TestClaimThatArrivesDuringItsRelease is released all the same. No function ran
// for it, and no process would end it.
func TestClaimThatArrivesDuringItsRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		var claim []store.Change
		p.faults.Decide(func(r request) fault {
			switch {
			case r.To() == store.InProgress:
				claim = slices.Clone(r.Changes)
				return fault{Before: errCut}
			case claim != nil && r.Method == "Swap" && r.Changes[0].If == claim[0].To.Token:
				late := claim
				claim = nil
				return fault{Reply: func() { _, _ = mem.Swap(t.Context(), late) }}
			default:
				return fault{}
			}
		})
		do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrUnavailable)
		check.NoError(t, p.Close(t.Context()), "Close")
		wantState(t, mem, theCall, store.Pending)
	})
}

// TestRejectedClaimIsNotReleased: the claim was not written. There is nothing to
// release, and Close has nothing to wait for.
func TestRejectedClaimIsNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.faults.Decide(func(r request) fault { return fault{Result: &store.SwapResult{Err: errBoom}} })
		do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrUnavailable, errBoom)
		check.Require(t, p.Close(t.Context()), "Close")
		check.Equal(t, p.faults.Calls(), 1, "calls of the store (the claim only)")
	})
}

// TestAbandonedClaimsAreReleasedInBatches: released one by one, they would hold
// their keys for longer than their callers wait before a retry.
func TestAbandonedClaimsAreReleasedInBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, seen := grouped(t, mem, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		gates := hold(p, seen.note, 3)
		ctx, giveUp := context.WithCancel(t.Context())
		waits := []<-chan answer{claim(t.Context(), p, op, "first")}
		const many = 20
		for n := range many {
			waits = append(waits, claim(ctx, p, op, fmt.Sprint(n)))
		}
		close(gates[0])
		synctest.Wait() // they are on their way
		giveUp()
		synctest.Wait()
		close(gates[1])
		synctest.Wait() // the first caller releases its claim, and all others wait for it
		close(gates[2])
		for _, wait := range waits {
			<-wait
		}
		check.Require(t, p.Close(t.Context()), "Close")
		for n := range many {
			wantState(t, mem, op.Call(me, fmt.Sprint(n), "in"), store.Pending)
		}
		askings := 0
		for _, batch := range seen.seen() {
			if slices.ContainsFunc(batch, func(c string) bool { return strings.HasSuffix(c, "→Pending") }) {
				askings++
			}
		}
		if askings > 2 {
			t.Errorf("the store was called %d times to release %d claims: %v", askings, many, seen.seen())
		}
	})
}
