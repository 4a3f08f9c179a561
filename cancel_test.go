package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// cancelled cancels c for a reason and checks what is said to stand.
func cancelled(t *testing.T, p *process, c semel.Call, want store.State) store.Record {
	t.Helper()
	r, err := admin.Cancel(t.Context(), p, c.ID(), "not wanted")
	check.Result(r.State, err)(t, want, "Cancel")
	return wantState(t, p.mem, c, want)
}

// TestCancel of what does not run, in each state.
func TestCancel(t *testing.T) {
	want := map[existingState]store.State{
		nothing: store.Absent, pending: store.Failed, succeeded: store.Succeeded, failed: store.Failed, inDoubt: store.InDoubt,
		live: store.InProgress, expired: store.InProgress, // which is asked to end
	}
	eachExisting(t, func(t *testing.T, s existingState) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		call := op.Call(me, "k", "in")
		createExisting(t, p.mem, call, s)
		before := record(t, p.mem, call)
		cancelled(t, p, call, want[s])
		after := cancelled(t, p, call, want[s]) // twice is as once
		if s != pending {
			check.Equal(t, after.Token, before.Token, "the record")
			return
		}
		p.seen.want(t, event.Cancelled)
		failure := do(t.Context(), p, call, never(t))
		failure.wantFailure(t, "not wanted")
		wantTries(t, wantCode(t, failure.err, "cancelled"), admin.TryError)
	})
}

// TestCancelPending: due or not, of an operation that the engine was not given,
// and of one that is tried again.
func TestCancelPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op, stranger := task(semel.AtLeastOnce(), 9, 9), plain("stranger", queueable(semel.OperationOptions[string]{Retention: time.Minute}))
		p, _ := owned(t, op)
		for _, c := range []semel.Call{op.Call(me, "now", "in"), op.Call(me, "later", "in"), stranger.Call(me, "k", "in")} {
			_, _ = semel.Enqueue(t.Context(), p, c, semel.EnqueueOptions{Delay: map[bool]time.Duration{true: time.Hour}[c.Key() == "later"]})
			r := cancelled(t, p, c, store.Failed)
			want := 24 * time.Hour
			if c.Operation() == "stranger" {
				want = time.Minute // which the record says
			}
			if r.Expire != want || string(r.Input) != `"in"` {
				t.Errorf("it expires in %v, with the input %s; want %v, and its input", r.Expire, r.Input, want)
			}
		}
		dequeued(t, p, op, 0)
		wantField(t, check.Err(admin.Cancel(t.Context(), p, op.Call(me, "now", "in").ID(), "")), "Reason")
	})
}

// TestCancelTaintedPending: it waits for another attempt, due or not, and is
// parked in doubt, for ever: no attempt can prove anything about the earlier one.
func TestCancelTaintedPending(t *testing.T) {
	eachInBubble(t, map[string]bool{"due": true, "delayed": false}, func(t *testing.T, due bool) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
		work(t, p, op, fails(errBoom)).wantRunNow(t, store.Unknown, store.Pending)
		if due {
			pass(time.Minute)
		}
		cancelled(t, p, call, store.InDoubt)
		p.seen.want(t, event.InDoubt)
		got := progress(t, p.mem, call)
		wantTries(t, got, admin.TryError, admin.TryInterrupted)
		if text := got.Tries[1].Error; text != "semel: cancelled: not wanted" {
			t.Errorf("its history says %q, want the reason", text)
		}
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
	})
}

// TestCancelRunning: the function's context ends with the next beat, and what it
// returns decides.
func TestCancelRunning(t *testing.T) {
	type row struct {
		policy    semel.Policy
		v         string
		err       error
		state     store.State
		cancelled bool // is the outcome
	}
	eachInBubble(t, map[string]row{
		"proven":               {semel.AtLeastOnce(), "", semel.NotCommitted(errBoom), store.Failed, true},
		"snoozed":              {semel.AtLeastOnce(), "", semel.Snooze(time.Second), store.Failed, true},
		"unknown":              {semel.AtLeastOnce(), "", context.Canceled, store.InDoubt, false},
		"unknown under Hold":   {semel.Hold(), "", context.Canceled, store.InDoubt, false},
		"Atomic, without InTx": {semel.Atomic(), "", context.Canceled, store.InDoubt, false},
		"final":                {semel.AtLeastOnce(), "", semel.Final(errBoom), store.Failed, false},
		"success":              {semel.AtLeastOnce(), "v", nil, store.Succeeded, false},
	}, func(t *testing.T, tt row) {
		p, op := ownedTask(t, tt.policy, 9, 9)
		attempts := running(t, p, op, 2)
		a, neighbour := attempts[0], attempts[1]
		for range 2 { // twice is as once
			cancelled(t, p, a.Call(), store.InProgress)
		}
		wantAlive(t, a)
		adapter.RenewLeases(t.Context(), p, attempts)
		wantCause(t, a, semel.ErrCancelled)
		wantAlive(t, neighbour)
		got := answerOf(a.End(tt.v, tt.err))
		wantState(t, p.mem, a.Call(), tt.state)
		switch {
		case tt.cancelled:
			got.wantFailure(t, "not wanted")
			wantTries(t, wantCode(t, got.err, "cancelled"), admin.TryInterrupted)
		case tt.state == store.InDoubt:
			got.wantRunNow(t, store.Unknown, store.InDoubt)
		}
		pass(time.Hour)
		dequeued(t, p, op, 0)
	})
}

// TestCancelOutlivesTheAttempt: one that ended, or died, before it saw that it was
// cancelled is not run again.
func TestCancelOutlivesTheAttempt(t *testing.T) {
	eachInBubble(t, map[string]func(t *testing.T, p *process, a *semel.Attempt){
		"proven error": func(_ *testing.T, _ *process, a *semel.Attempt) { _, _ = a.End("", semel.NotCommitted(errBoom)) },
		"died": func(t *testing.T, p *process, a *semel.Attempt) {
			crashingHandler(t, a)
			sweepOne(t, p, a.Call())
		},
	}, func(t *testing.T, ends func(t *testing.T, p *process, a *semel.Attempt)) {
		p, op := ownedTask(t, semel.Atomic(), 9, 9)
		a := running(t, p, op, 1)[0]
		cancelled(t, p, a.Call(), store.InProgress)
		ends(t, p, a)
		wantState(t, p.mem, a.Call(), store.Pending)
		pass(time.Hour)
		work(t, p, op, never(t)).wantFailure(t, "not wanted")
		wantState(t, p.mem, a.Call(), store.Failed)
	})
}

// TestCancelEndsWithTheKeysNextRun: a cancellation of earlier attempts does not
// apply to attempts after a redrive.
func TestCancelEndsWithTheKeysNextRun(t *testing.T) {
	eachInBubble(t, map[string]error{"redriven": semel.NotCommitted(errBoom), "resolved": errBoom}, func(t *testing.T, err error) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		a := running(t, p, op, 1)[0]
		for range 2 { // and once more, of the run after it
			cancelled(t, p, a.Call(), store.InProgress)
			adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
			wantCause(t, a, semel.ErrCancelled)
			_, _ = a.End("", err)
			if record(t, p.mem, a.Call()).State == store.Failed {
				check.Must(admin.Redrive(t.Context(), p, redrive(a.Call())))(t)
			} else {
				check.Must(admin.Resolve(t.Context(), p, admin.Resolution{ID: a.Call().ID(), To: store.Pending, Actor: "ann", Reason: "after all"}))(t)
			}
			a = dequeued(t, p, op, 1)[0]
			if out, err := a.Prepare(); out != nil || err != nil {
				t.Errorf("Prepare = %v, %v, want it to be run", out, err)
			}
			adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
			wantAlive(t, a)
		}
		answerOf(a.End("v", nil)).want(t, "v", false)
	})
}

// TestCancelErrors lets each store call fail, before and after it applied. A retry
// then succeeds.
func TestCancelErrors(t *testing.T) {
	for found, want := range map[string]store.State{
		"waiting": store.Failed, "waiting, tainted": store.InDoubt, "running": store.InProgress,
	} {
		t.Run(found, func(t *testing.T) {
			eachFaultyCall(t, 6, func(t *testing.T, f fault, k int) {
				p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
				switch found {
				case "waiting, tainted":
					work(t, p, op, fails(errBoom))
				case "running":
					dequeuedOne(t, p, op)
				}
				p.faults.Decide(failWriteCall(k, f))
				r, err := admin.Cancel(t.Context(), p, call.ID(), "not wanted")
				if errors.Is(err, semel.ErrInvalid) {
					t.Errorf("Cancel: %v", err)
				}
				if err == nil && f.Result == nil {
					wantState(t, p.mem, call, want)
					check.Equal(t, r.State, want, "Cancel")
				}
				p.faults.Decide(nil)
				if found == "running" {
					return // the request applies to this attempt, or to the next
				}
				check.Must(admin.Cancel(t.Context(), p, call.ID(), "not wanted"))(t)
				if r := record(t, p.mem, call); r.State != want && (r.State != store.InDoubt || want != store.Failed) {
					t.Errorf("the current record is %v, want %v", r.State, want)
				}
			})
		})
	}
}

// TestCancelRequestIsForOneRecord: the request is for a record that has been
// purged since. It does not cancel the next record of the key, which can be
// canceled on its own.
func TestCancelRequestIsForOneRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: steady(9, 9), Retention: time.Hour})
		p, mem := owned(t, op)
		c := queued(t, p, op, "k")[0]
		a := dequeued(t, p, op, 1)[0]
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the first"))(t)
		answerOf(a.End("v", nil)).want(t, "v", false)
		pass(61 * time.Minute)
		check.Result(admin.Purge(t.Context(), p, 100))(t, 1, "Purge")

		queued(t, p, op, "k")
		a = dequeued(t, p, op, 1)[0]
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		answerOf(a.End(nil, semel.Snooze(0))).wantRunNow(t, store.NotCommitted, store.Pending)
		a = dequeued(t, p, op, 1)[0]
		check.NoError(t, context.Cause(a.Context()), "the next record's attempt is cancelled")
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the second"))(t)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		if err := context.Cause(a.Context()); !errors.Is(err, semel.ErrCancelled) || err.Error() != "semel: cancelled: the second" {
			t.Errorf("it ends with %v, want it cancelled for the second reason", err)
		}
		wantState(t, mem, c, store.InProgress)
	})
}

// TestCancelDuringATakeover: another process takes a tainted record over before
// the cancellation marks it InDoubt. The new attempt receives the request like any
// running attempt.
func TestCancelDuringATakeover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		other := start(t, p.mem, semel.Options{Operations: []semel.Declared{op}})
		c := queued(t, p, op, "k")[0]
		answerOf(dequeued(t, p, op, 1)[0].End(nil, errBoom)).wantRunNow(t, store.Unknown, store.Pending)
		var taken *semel.Attempt
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" && taken == nil { // after the record was read
				check.Must(admin.Reschedule(t.Context(), other, c.ID(), 0))(t)
				taken = dequeued(t, other, op, 1)[0]
			}
			return fault{}
		})
		if r, err := admin.Cancel(t.Context(), p, c.ID(), "why"); err != nil || r.State != store.InProgress {
			t.Errorf("Cancel = %v, %v, want a request while it runs", r.State, err)
		}
		adapter.RenewLeases(t.Context(), other, []*semel.Attempt{taken})
		check.ErrorIs(t, context.Cause(taken.Context()), semel.ErrCancelled, "Cause")
	})
}

// TestCancelKeepsTheFirstReason: a second request to cancel the same attempt
// changes nothing. This holds too if the store answers so slowly that the request
// is older than the record was when it was read.
func TestCancelKeepsTheFirstReason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, c := queuedTask(t, semel.Atomic(), 9, 9)
		a := dequeued(t, p, op, 1)[0]
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the first"))(t)
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" {
				pass(time.Second)
			}
			return fault{}
		})
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the second"))(t)
		p.faults.Decide(nil)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		if err := context.Cause(a.Context()); err == nil || err.Error() != "semel: cancelled: the first" {
			t.Errorf("the attempt ends with %v, want it cancelled for the first reason", err)
		}
	})
}
