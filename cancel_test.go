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
	"github.com/semelgo/semel/store/memory"
)

// cancelled cancels c for a reason and checks what is said to stand.
func cancelled(t *testing.T, p *process, mem *memory.Store, c semel.Call, want store.State) store.Record {
	t.Helper()
	r, err := admin.Cancel(t.Context(), p, c.ID(), "not wanted")
	check.Result(r.State, err)(t, want, "Cancel")
	return wantState(t, mem, c, want)
}

// TestCancel of what does not run, in each state.
func TestCancel(t *testing.T) {
	t.Parallel()
	want := map[existingState]store.State{
		nothing: store.Absent, pending: store.Failed, succeeded: store.Succeeded, failed: store.Failed, inDoubt: store.InDoubt,
	}
	for s, state := range want {
		t.Run(string(s), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", retried(semel.AtLeastOnce()))
				p, mem := owned(t, op)
				call := op.Call(me, "k", "in")
				createExisting(t, mem, call, s)
				before := record(t, mem, call)
				cancelled(t, p, mem, call, state)
				after := cancelled(t, p, mem, call, state) // twice is as once
				if s != pending && after.Token != before.Token {
					t.Errorf("%v became %v", before.Token, after.Token)
				}
				if s == pending {
					p.seen.want(t, event.Cancelled)
					failure := do(t.Context(), p, call, never(t))
					failure.wantFailure(t, "not wanted")
					wantTries(t, wantCode(t, failure.err, "cancelled"), admin.TryError)
				}
			})
		})
	}
}

// TestCancelPending: due or not, of an operation that the engine was not given,
// and of one that is tried again.
func TestCancelPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op, stranger := plain("op", retried(semel.AtLeastOnce())), plain("stranger", queueable(semel.OperationOptions[string]{Retention: time.Minute}))
		p, mem := owned(t, op)
		for _, c := range []semel.Call{op.Call(me, "now", "in"), op.Call(me, "later", "in"), stranger.Call(me, "k", "in")} {
			_, _ = semel.Enqueue(t.Context(), p, c, semel.EnqueueOptions{Delay: map[bool]time.Duration{true: time.Hour}[c.Key() == "later"]})
			r := cancelled(t, p, mem, c, store.Failed)
			want := 24 * time.Hour
			if c.Operation() == "stranger" {
				want = time.Minute // which the record says
			}
			if r.Expire != want || string(r.Input) != `"in"` {
				t.Errorf("it expires in %v, with the input %s; want %v, and its input", r.Expire, r.Input, want)
			}
		}
		dequeued(t, p, op, 0)
		_, err := admin.Cancel(t.Context(), p, op.Call(me, "now", "in").ID(), "")
		wantField(t, err, "Reason")
	})
}

// TestCancelTaintedPending: it waits for another attempt, due or not, and is
// parked in doubt, for ever: no attempt can prove anything about the earlier one.
func TestCancelTaintedPending(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]bool{"due": true, "delayed": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", retried(semel.AtLeastOnce()))
				p, mem := owned(t, op)
				call := queued(t, p, op, "k")[0]
				work(t, p, op, fails(errBoom)).wantRunNow(t, store.Unknown, store.Pending)
				if due {
					pass(time.Minute)
				}
				cancelled(t, p, mem, call, store.InDoubt)
				p.seen.want(t, event.InDoubt)
				got := progress(t, mem, call)
				wantTries(t, got, admin.TryError, admin.TryInterrupted)
				if text := got.Tries[1].Error; text != "semel: cancelled: not wanted" {
					t.Errorf("its history says %q, want the reason", text)
				}
				do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
			})
		})
	}
}

// TestCancelRunning: the function's context ends with the next beat, and what it
// returns decides.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		o     semel.OperationOptions[string]
		v     string
		err   error
		state store.State
	}{
		"proven":               {o: retried(semel.AtLeastOnce()), err: semel.NotCommitted(errBoom), state: store.Failed},
		"snoozed":              {o: retried(semel.AtLeastOnce()), err: semel.Snooze(time.Second), state: store.Failed},
		"unknown":              {o: retried(semel.AtLeastOnce()), err: context.Canceled, state: store.InDoubt},
		"unknown under Hold":   {o: retried(semel.Hold()), err: context.Canceled, state: store.InDoubt},
		"Atomic, without InTx": {o: retried(semel.Atomic()), err: context.Canceled, state: store.InDoubt},
		"final":                {o: retried(semel.AtLeastOnce()), err: semel.Final(errBoom), state: store.Failed},
		"success":              {o: retried(semel.AtLeastOnce()), v: "v", state: store.Succeeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", tt.o)
				p, mem := owned(t, op)
				attempts := running(t, p, op, 2)
				a, neighbour := attempts[0], attempts[1]
				cancelled(t, p, mem, a.Call(), store.InProgress)
				cancelled(t, p, mem, a.Call(), store.InProgress) // twice is as once
				wantAlive(t, a)
				adapter.RenewLeases(t.Context(), p, attempts)
				wantCause(t, a, semel.ErrCancelled)
				wantAlive(t, neighbour)
				got := answerOf(a.End(tt.v, tt.err))
				wantState(t, mem, a.Call(), tt.state)
				switch {
				case tt.state == store.Failed && name != "final":
					got.wantFailure(t, "not wanted")
					wantTries(t, wantCode(t, got.err, "cancelled"), admin.TryInterrupted)
				case tt.state == store.InDoubt:
					got.wantRunNow(t, store.Unknown, store.InDoubt)
				}
				pass(time.Hour)
				dequeued(t, p, op, 0)
			})
		})
	}
}

// TestCancelOutlivesTheAttempt: one that ended, or died, before it saw that it was
// cancelled is not run again.
func TestCancelOutlivesTheAttempt(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(t *testing.T, p *process, a *semel.Attempt){
		"proven error": func(_ *testing.T, _ *process, a *semel.Attempt) { _, _ = a.End("", semel.NotCommitted(errBoom)) },
		"died": func(t *testing.T, p *process, a *semel.Attempt) {
			t.Helper()
			crashingHandler(t, a)
			sweepOne(t, p, a.Call())
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", retried(semel.Atomic()))
				p, mem := owned(t, op)
				a := running(t, p, op, 1)[0]
				cancelled(t, p, mem, a.Call(), store.InProgress)
				ends(t, p, a)
				wantState(t, mem, a.Call(), store.Pending)
				pass(time.Hour)
				work(t, p, op, never(t)).wantFailure(t, "not wanted")
				wantState(t, mem, a.Call(), store.Failed)
			})
		})
	}
}

// TestCancelEndsWithTheKeysNextRun: a cancellation of earlier attempts does not
// apply to attempts after a redrive.
func TestCancelEndsWithTheKeysNextRun(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"redriven": semel.NotCommitted(errBoom), "resolved": errBoom} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", retried(semel.AtLeastOnce()))
				p, mem := owned(t, op)
				a := running(t, p, op, 1)[0]
				for range 2 { // and once more, of the run after it
					cancelled(t, p, mem, a.Call(), store.InProgress)
					adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
					wantCause(t, a, semel.ErrCancelled)
					_, _ = a.End("", err)
					r := record(t, mem, a.Call())
					var perr error
					if r.State == store.Failed {
						_, perr = admin.Redrive(t.Context(), p, admin.RedriveRequest{ID: r.ID, Actor: "ann", Reason: "after all"})
					} else {
						_, perr = admin.Resolve(t.Context(), p, admin.Resolution{ID: r.ID, To: store.Pending, Actor: "ann", Reason: "after all"})
					}
					check.NoError(t, perr, "%s of %v", name, r.State)
					a = dequeued(t, p, op, 1)[0]
					if out, err := a.Prepare(); out != nil || err != nil {
						t.Errorf("Prepare = %v, %v, want it to be run", out, err)
					}
					adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
					wantAlive(t, a)
				}
				answerOf(a.End("v", nil)).want(t, "v", false)
			})
		})
	}
}

// TestCancelErrors lets each store call fail, before and after it applied. A retry
// then succeeds.
func TestCancelErrors(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"waiting", "waiting, tainted", "running"} {
		for fname, f := range everyFault() {
			for k := range 6 {
				t.Run(s+"/"+fname, func(t *testing.T) {
					bubble(t, func(t *testing.T) { cancelWrong(t, s, f, k+1) })
				})
			}
		}
	}
}

func cancelWrong(t *testing.T, s string, f fault, k int) {
	t.Helper()
	op := plain("op", retried(semel.AtLeastOnce()))
	p, mem := owned(t, op)
	call := queued(t, p, op, "k")[0]
	var a *semel.Attempt
	want := store.Failed
	switch s {
	case "waiting, tainted":
		work(t, p, op, fails(errBoom))
		want = store.InDoubt
	case "running":
		a = dequeuedOne(t, p, op)
		want = store.InProgress
	}
	p.faults.Decide(failWriteCall(k, f))
	r, err := admin.Cancel(t.Context(), p, call.ID(), "not wanted")
	if err == nil && f.Result == nil {
		wantState(t, mem, call, want)
		check.Equal(t, r.State, want, "Cancel")
	}
	p.faults.Decide(nil)
	pass(time.Minute)
	if a != nil {
		return // its lease has expired, and the request applies to the next attempt
	}
	if _, err := admin.Sweep(t.Context(), p, 10); err != nil {
		t.Errorf("Sweep: %v", err)
	}
	if _, err := admin.Cancel(t.Context(), p, call.ID(), "not wanted"); err != nil {
		t.Errorf("Cancel again: %v", err)
	}
	if r := record(t, mem, call); r.State != want && (r.State != store.InDoubt || want != store.Failed) {
		t.Errorf("the current record is %v, want %v", r.State, want)
	}
	if errors.Is(err, semel.ErrInvalid) {
		t.Errorf("Cancel: %v", err)
	}
}
