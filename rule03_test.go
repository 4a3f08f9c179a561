package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 3: a change was applied if the current record has its token. Repeating a
// change is always safe, a lost reply makes no caller its own follower, and drivers
// that run a statement twice change nothing.

// firstReplyLost loses the first reply to each request.
func firstReplyLost() func(request) fault {
	asked := map[string]bool{}
	return func(r request) fault {
		var name strings.Builder
		name.WriteString(r.Method + r.ID.String())
		for _, c := range r.Changes {
			fmt.Fprint(&name, c.If, c.To.Token)
		}
		if asked[name.String()] {
			return fault{}
		}
		asked[name.String()] = true
		if r.Method == "Atomic" {
			return commitApplied()
		}
		return fault{After: errCut}
	}
}

func runsEverythingTwice(request) fault { return fault{Twice: true} }

// TestRule03Lifetimes drives keys through everything that may happen to them:
// with replies lost and with statements run twice it goes as it goes without.
func TestRule03Lifetimes(t *testing.T) {
	eachPair(t, map[string]func() func(request) fault{
		"undisturbed":          func() func(request) fault { return nil },
		"first replies lost":   firstReplyLost,
		"statements run twice": func() func(request) fault { return runsEverythingTwice },
	}, lifetimes(), func(t *testing.T, plan func() func(request) fault, l keyHistory) {
		op := plain("op", l.o)
		p, mem := owned(t, op)
		call := op.Call(me, "k", "in")
		createExisting(t, mem, call, l.found)
		p.faults.Decide(plan())
		l.live(t, p, call)
		check.Equal(t, wantState(t, mem, call, l.state).Attempt, l.attempt, "attempt")
		p.seen.wantNone(t, event.Late, event.Fenced, event.Conflict)
	})
}

// keyHistory is what happens to one key, and its record afterwards.
type keyHistory struct {
	o       semel.OperationOptions[string]
	found   existingState
	live    func(t *testing.T, p *process, c semel.Call)
	state   store.State
	attempt uint32
}

func lifetimes() map[string]keyHistory {
	none := semel.OperationOptions[string]{}
	atomic := semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Minute}
	keep := semel.OperationOptions[string]{OnError: semel.Keep}
	keyed := semel.OperationOptions[string]{Policy: semel.Keyed()}
	heal := semel.OperationOptions[string]{Policy: semel.Heal(finds("found", true))}
	return map[string]keyHistory{
		"run":                 {none, nothing, runOnce, store.Succeeded, 1},
		"fail":                {none, nothing, failOnce, store.Failed, 1},
		"release and run":     {none, pending, runOnce, store.Succeeded, 2},
		"doubt":               {none, expired, findDoubt, store.InDoubt, 1},
		"take over":           {keyed, expired, runOnce, store.Succeeded, 2},
		"heal":                {heal, expired, findHealed, store.Succeeded, 1},
		"sweep":               {keyed, expired, sweepOne, store.Pending, 1},
		"resolve":             {none, inDoubt, resolveOne, store.Failed, 1},
		"beat for ten leases": {none, nothing, runLong, store.Succeeded, 1},
		"inline":              {none, nothing, runTxOnce, store.Succeeded, 1},
		"inline over Pending": {none, pending, runTxOnce, store.Succeeded, 2},
		"inline failure":      {keep, nothing, failTxOnce, store.Failed, 1},
		"leased":              {atomic, nothing, runTxOnce, store.Succeeded, 1},
	}
}

func runOnce(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	var runs counted
	do(t.Context(), p, c, runs.of(returns("v"))).want(t, "v", false)
	do(t.Context(), p, c, never(t)).want(t, "v", true)
	runs.want(t, 1)
}

func runLong(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	do(t.Context(), p, c, func(ctx context.Context) (string, error) {
		pass(5 * time.Minute) // ten leases
		return "v", context.Cause(ctx)
	}).want(t, "v", false)
}

func failOnce(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	do(t.Context(), p, c, fails(semel.Final(errBoom))).wantFailure(t, "boom")
	do(t.Context(), p, c, never(t)).wantFailure(t, "boom")
}

func failTxOnce(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	doTx(t.Context(), p, c, failsAfter(errBoom)).wantFailure(t, "boom")
	doTx(t.Context(), p, c, neverTx(t)).wantFailure(t, "boom")
}

func runTxOnce(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	runs := 0
	fn := func(context.Context, *memory.Tx) (string, error) { runs++; return "v", nil }
	doTx(t.Context(), p, c, fn).want(t, "v", false)
	doTx(t.Context(), p, c, neverTx(t)).want(t, "v", true)
	check.Equal(t, runs, 1, "runs")
}

func findDoubt(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	do(t.Context(), p, c, never(t)).wantErr(t, semel.ErrInDoubt)
}

func findHealed(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	do(t.Context(), p, c, never(t)).want(t, "found", true)
}

func sweepOne(t *testing.T, p *process, _ semel.Call) {
	t.Helper()
	var swept admin.Swept
	var err error
	for range 2 { // a scan has no second try of its own
		if swept, err = admin.Sweep(t.Context(), p, 10); err == nil {
			break
		}
	}
	if err != nil || swept.Requeued != 1 {
		t.Errorf("Sweep = %+v, %v, want one requeued", swept, err)
	}
}

func resolveOne(t *testing.T, p *process, c semel.Call) {
	t.Helper()
	r := admin.Resolution{ID: c.ID(), To: store.Failed, Actor: "ann", Reason: "no trace of it"}
	if got, err := admin.Resolve(t.Context(), p, r); err != nil || got.State != store.Failed {
		t.Errorf("Resolve = %v, %v, want Failed", got.State, err)
	}
	var notes []store.Note
	var err error
	for range 2 {
		if notes, err = admin.Notes(t.Context(), p, c.ID()); err == nil {
			break
		}
	}
	check.Result(len(notes), err)(t, 1, "Notes")
}

// TestRule03BusyAfterALostReply: a claim whose reply was lost, and that blocks its
// own repetition, does not make the caller its own follower.
func TestRule03BusyAfterALostReply(t *testing.T) {
	eachInBubble(t, map[string]time.Duration{"told at once": 0, "waiting": time.Minute}, func(t *testing.T, wait time.Duration) {
		p, call := soloCall(t, semel.OperationOptions[string]{Wait: wait})
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
