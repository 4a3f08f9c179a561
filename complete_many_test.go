package semel_test

import (
	"cmp"
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

// endings are those of attempts that each return their own key.
func endings(attempts ...*semel.Attempt) []*adapter.Completion {
	var ends []*adapter.Completion
	for _, a := range attempts {
		ends = append(ends, &adapter.Completion{Attempt: a, Value: a.Call().Key()})
	}
	return ends
}

// wantOwn checks that the key of an attempt has its own result, and tells it.
func wantOwn(t *testing.T, p *process, a *semel.Attempt) {
	t.Helper()
	do(t.Context(), p, a.Call(), never(t)).want(t, a.Call().Key(), true)
}

// TestCompleteMany ends all in one Swap, each with its own value, also for a caller that
// has hung up.
func TestCompleteMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		attempts := running(t, p, op, 50)
		p.faults.Decide(nil)
		ends := endings(attempts...)
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		if rest := adapter.CompleteMany(ctx, p, ends); len(rest) != 0 || p.faults.CallsOf("Swap") != 1 || p.faults.Calls() != 1 {
			t.Errorf("%d are left after %d Swaps of %d calls, want none, after one", len(rest), p.faults.CallsOf("Swap"), p.faults.Calls())
		}
		for i, a := range attempts {
			answerOf(ends[i].Outcome, ends[i].EndErr).want(t, a.Call().Key(), false)
			wantOwn(t, p, a)
			if !errors.Is(context.Cause(a.Context()), context.Canceled) {
				t.Errorf("its context ended with %v, want it over", context.Cause(a.Context()))
			}
			wantField(t, check.Err(a.End("v", nil)), "Attempt")
		}
		check.Equal(t, p.seen.count(event.Succeeded), 50, "successes were observed")
		check.NoError(t, p.Close(t.Context()), "Close")
	})
}

// panicking is a result that panics while it is encoded.
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("out of cheese") }

// TestCompleteManyOfSeveralKinds: what cannot be ended with the others is left to be
// ended alone, and spoils nothing for them.
func TestCompleteManyOfSeveralKinds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := task(semel.AtLeastOnce(), 9, 9)
		mem := memory.New(memory.Options{})
		p := startOn(t, limitedOver(mem, func(c *store.Capabilities) { c.MaxOutcome = 1000 }), semel.Options{})
		attempts := running(t, p, op, 9)
		fine, lost, busy, ended, erred, large, panics, around, doubted := attempts[0], attempts[1], attempts[2], attempts[3],
			attempts[4], attempts[5], attempts[6], attempts[7], attempts[8]
		takeOverRecord(t, mem, lost)
		takeOverRecord(t, mem, around)
		bag := attempts
		again := dequeuedUpTo(t, p, op, 2, 2) // the lost one, too, by the same worker
		bag = append(bag, again...)
		setInDoubt(t, mem, doubted.Call())
		answerOf(ended.End("ended", nil)).want(t, "ended", false)
		inTx := inTransaction(t, p, "in tx")
		bag = append(bag, inTx)
		ends := endings(bag...)
		ends[4].Err, ends[5].Value, ends[6].Value = errBoom, strings.Repeat("x", 2000), panicking{}
		var rest []*adapter.Completion
		whileHeld(t, mem, busy, func() {
			p.faults.Decide(nil)
			rest = adapter.CompleteMany(t.Context(), p, ends)
		})
		check.Equal(t, p.faults.CallsOf("Swap"), 1, "Swaps")
		left := map[*semel.Attempt]bool{}
		for _, e := range rest {
			left[e.Attempt] = true
		}
		for _, a := range []*semel.Attempt{lost, busy, ended, erred, panics, around, doubted, inTx} {
			if !left[a] {
				t.Errorf("attempt %d of %s was ended with the others", a.Number(), a.Call().Key())
			}
		}
		wantOwn(t, p, fine)
		wantOwn(t, p, again[0])
		wantOwn(t, p, again[1])
		if r := wantState(t, mem, large.Call(), store.Succeeded); left[large] || len(r.Outcome) > 1000 {
			t.Errorf("the large one is left: %v, with %d bytes stored", left[large], len(r.Outcome))
		}
		endAlone(t, p, mem, rest, map[*semel.Attempt]string{
			lost: "replayed", around: "replayed", busy: "own", ended: "has ended already",
			erred: "boom", doubted: "own", inTx: "own",
		})
	})
}

// inTransaction is an attempt whose own transaction has decided.
func inTransaction(t *testing.T, p *process, key string) *semel.Attempt {
	t.Helper()
	op := plain("tx", retried(semel.Atomic()))
	queued(t, p, op, key)
	a := dequeuedOne(t, p, op)
	check.Must(semel.InTx(a.Context(), p.Engine, puts("e", key)))(t)
	return a
}

// whileHeld calls fn while another open transaction holds the record of a.
func whileHeld(t *testing.T, mem *memory.Store, a *semel.Attempt, fn func()) {
	t.Helper()
	err := inTx(t, mem, func(tx *memory.Tx) error {
		to := a.Record()
		to.Input, to.Outcome = nil, nil
		answers, err := mem.SwapTx(t.Context(), tx, []store.Change{{If: to.Token, To: to}})
		if err != nil || answers[0].Token != to.Token {
			t.Errorf("SwapTx = %v, %v", answers, err)
		}
		fn()
		return errBoom
	})
	check.ErrorIs(t, err, errBoom, "Atomic")
}

// endAlone ends the remaining attempts and checks their answers.
func endAlone(t *testing.T, p *process, mem *memory.Store, rest []*adapter.Completion, want map[*semel.Attempt]string) {
	t.Helper()
	for _, e := range rest {
		a := e.Attempt
		if _, panics := e.Value.(panicking); panics {
			abruptExits()["panic"].wantAbrupt(t, func() answer { return answerOf(a.End(e.Value, e.Err)) })
			wantState(t, mem, a.Call(), store.InProgress)
			continue
		}
		got := answerOf(a.End(e.Value, e.Err))
		switch wanted := want[a]; {
		case wanted == "replayed":
			got.want(t, a.Call().Key(), true)
		case wanted == "own" || wanted == "":
			got.want(t, a.Call().Key(), false)
			wantOwn(t, p, a)
		case got.err == nil || !strings.Contains(got.err.Error(), wanted):
			t.Errorf("attempt %d of %s got %q, %v, want %q", a.Number(), a.Call().Key(), got.v, got.err, wanted)
		}
	}
}

// TestCompleteManyWithLostReply: all come back, and End alone finds out what has
// become of each. No answer is ever another's.
func TestCompleteManyWithLostReply(t *testing.T) {
	eachInBubble(t, map[string]fault{
		"cut before": {Before: errCut}, "cut after": {After: errCut}, "no answer, not applied": {Hang: true},
		"no answer, applied": {Mute: true}, "run twice": {Twice: true},
	}, func(t *testing.T, f fault) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		attempts := running(t, p, op, 20)
		p.faults.Decide(failFirst("Swap", f))
		rest := adapter.CompleteMany(t.Context(), p, endings(attempts...))
		if want := map[bool]int{true: 0, false: 20}[f.Twice]; len(rest) != want {
			t.Errorf("%d are left, want %d", len(rest), want)
		}
		for _, e := range rest {
			answerOf(e.Attempt.End(e.Value, e.Err)).want(t, e.Attempt.Call().Key(), false)
		}
		for _, a := range attempts {
			wantOwn(t, p, a)
		}
	})
}

// TestCompleteManyIsBoundedByTheBatch of the store, and asks nothing for nothing.
func TestCompleteManyIsBoundedByTheBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, attempts := bounded(t)
		p.faults.Decide(func(r request) fault { return fault{Before: map[bool]error{true: errCut}[r.MethodN == 2]} })
		rest := adapter.CompleteMany(t.Context(), p, endings(attempts...))
		if n := p.faults.CallsOf("Swap"); n != 3 || len(rest) != 2 {
			t.Errorf("%d are left after %d Swaps, want the two of the one of 3 that was cut", len(rest), n)
		}
		for _, e := range rest {
			answerOf(e.Attempt.End(e.Value, e.Err)).want(t, e.Attempt.Call().Key(), false)
		}
		for _, a := range attempts {
			wantOwn(t, p, a)
		}
		p.faults.Decide(nil)
		if rest := adapter.CompleteMany(t.Context(), p, nil); len(rest) != 0 || p.faults.Calls() != 0 {
			t.Errorf("%d are left of nothing, after %d calls", len(rest), p.faults.Calls())
		}
	})
}

// TestCompletionCanBeReused: a reused Completion keeps nothing of its earlier
// attempt.
func TestCompletionCanBeReused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{}})
		p, _ := owned(t, op)
		check.Must(semel.Enqueue(t.Context(), p, op.Call(me, "first", "in"), semel.EnqueueOptions{Priority: 4}))(t)
		ending := new(adapter.Completion)
		for _, a := range []*semel.Attempt{dequeued(t, p, op, 1)[0], begin(t, p, op.Call(me, "second", "in"))} {
			ending.Attempt, ending.Value = a, a.Call().Key()
			want := a.Record().Priority
			if rest := adapter.CompleteMany(t.Context(), p, []*adapter.Completion{ending}); len(rest) > 0 {
				t.Fatal("it is not settled")
			}
			check.Equal(t, ending.Outcome.Record.Priority, want, "%s has priority", a.Call().Key())
		}
	})
}

// TestEndQuietReturnsNothingForOwnSuccess: it returns nothing after a success of
// its own attempt, and otherwise the same as End.
func TestEndQuietReturnsNothingForOwnSuccess(t *testing.T) {
	shows := semel.Heal(finds("shown", true))
	type row struct {
		policy semel.Policy
		err    error
		resist bool // another caller heals the record meanwhile
		value  string
		want   string
		fails  bool
	}
	eachInBubble(t, map[string]row{
		"its own success":          {policy: semel.Hold()},
		"a value that JSON alters": {policy: semel.Hold(), value: "m\xff", want: "m\ufffd"},
		"an error":                 {policy: semel.Hold(), err: errBoom, fails: true},
		"an error, and evidence":   {policy: shows, err: errBoom, want: "shown"},
		"a success of others":      {policy: shows, resist: true, want: "shown"},
		"an error that is proven":  {policy: semel.Hold(), err: semel.NotCommitted(errBoom), fails: true},
	}, func(t *testing.T, row row) {
		p, mem := solo(t, semel.Options{})
		op := semel.Define("op", semel.OperationOptions[int]{Policy: row.policy})
		call := op.Call(me, "k", 1)
		a := begin(t, p, call)
		if row.resist {
			do(t.Context(), start(t, mem, semel.Options{}), call, returns("run")).want(t, "shown", true)
		}
		out, err := a.EndQuiet(cmp.Or(row.value, "mine"), row.err)
		if (err != nil) != row.fails || row.fails && !errors.Is(err, errBoom) {
			t.Fatalf("EndQuiet: %v", err)
		}
		var got string
		if out != nil && out.Decode(&got) != nil || got != row.want || (out != nil) != (row.want != "") {
			t.Errorf("got %q, want %q", got, row.want)
		}
		if current := record(t, mem, call); (current.State == store.Succeeded) == row.fails {
			t.Errorf("the current record is %v", current.State)
		}
		check.ErrorIs(t, check.Err(a.EndQuiet("again", nil)), semel.ErrInvalid, "ended twice")
	})
}
