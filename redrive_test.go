package semel_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func redrive(c semel.Call) admin.RedriveRequest {
	return admin.RedriveRequest{ID: c.ID(), Actor: "ann", Reason: "mended"}
}

// exhaust lets a call fail for good.
func exhaust(t *testing.T, p *process, op *semel.Operation[string]) semel.Call {
	t.Helper()
	call := queued(t, p, op, "k")[0]
	for range 2 {
		work(t, p, op, fails(semel.NotCommitted(errBoom)))
		pass(time.Minute)
	}
	return call
}

// TestRedrive: a failed record is run again with the same limits, and keeps its
// history and the operator's note.
func TestRedrive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 2, 1)
		call := exhaust(t, p, op)
		for n := range 2 {
			wantState(t, p.mem, call, store.Failed)
			r := redrive(call)
			r.Delay = time.Hour
			now, err := admin.Redrive(t.Context(), p, r)
			check.Result(now.Token, err)(t, record(t, p.mem, call).Token, "Redrive")
			current := wantState(t, p.mem, call, store.Pending)
			wantDue(t, current, time.Hour)
			got := progress(t, p.mem, call)
			if got.Errors != 0 || got.Redrives != n+1 || got.Ended != current.Attempt || len(got.Tries) != 2*(n+1) || current.Expire != 0 {
				t.Errorf("%+v, expiring in %v; want it to begin anew, with its history, never to be purged", got, current.Expire)
			}
			pass(time.Hour)
			work(t, p, op, fails(semel.NotCommitted(errBoom))).wantRunNow(t, store.NotCommitted, store.Pending)
			pass(time.Minute)
			work(t, p, op, fails(semel.NotCommitted(errBoom))).wantErr(t)
		}
		notes, err := admin.Notes(t.Context(), p, call.ID())
		if err != nil || len(notes) != 2 || notes[0].Actor != "ann" || notes[0].Reason != "mended" || notes[0].From.State != store.Failed {
			t.Errorf("Notes = %+v, %v, want both redrives", notes, err)
		}
		check.Equal(t, p.seen.count(event.Redriven), 2, "redrives were observed")
		_, _ = admin.Redrive(t.Context(), p, redrive(call))
		if a := dequeued(t, p, op, 1)[0]; a.Number() != 7 {
			t.Errorf("attempt %d, want them counted on", a.Number())
		} else if in, err := op.Input(a); in != "k" || err != nil {
			t.Errorf("Input = %q, %v, want what was enqueued", in, err)
		}
	})
}

// TestRedriveOfAFinalFailure: the failure's details are not taken for a history.
func TestRedriveOfAFinalFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
		work(t, p, op, fails(semel.Final(&semel.Failure{Code: "no", Details: []byte(`{"redrives":7,"tries":[{"attempt":9}]}`)}))).wantErr(t)
		check.Must(admin.Redrive(t.Context(), p, redrive(call)))(t)
		if got := progress(t, p.mem, call); got.Redrives != 1 || len(got.Tries) != 0 {
			t.Errorf("%+v, want one redrive and no history", got)
		}
	})
}

// TestRedriveRejected: a caller's key cannot be redriven in any state, nor a record
// that has not failed and is not in doubt under a policy that allows another
// attempt.
func TestRedriveRejected(t *testing.T) {
	unretried := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce()})
	type row struct {
		op           *semel.Operation[string]
		given, owned bool
	}
	eachPair(t, existingStates(), map[string]row{
		"owned": {task(semel.AtLeastOnce(), 9, 9), true, true}, "not retried": {unretried, true, false}, "not given": {task(semel.AtLeastOnce(), 9, 9), false, false},
	}, func(t *testing.T, s existingState, tt row) {
		p, mem := solo(t, semel.Options{})
		if tt.given {
			p = start(t, mem, semel.Options{Operations: []semel.Declared{tt.op}})
		}
		call := tt.op.Call(me, "k", "in")
		createExisting(t, mem, call, s)
		before := record(t, mem, call)
		_, err := admin.Redrive(t.Context(), p, redrive(call))
		var want error
		switch {
		case s == inDoubt && tt.owned: // AtLeastOnce allows another attempt
		case s != failed:
			want = admin.ErrNotFailed
		case !tt.owned:
			want = admin.ErrNotOwned
		}
		check.ErrorIs(t, err, want, "Redrive")
		if r := record(t, mem, call); (r.Token == before.Token) != (want != nil) {
			t.Errorf("%v became %v", before.Token, r.Token)
		}
	})
}

// TestRedriveErrors lets each store call fail. A reported success happened, once.
func TestRedriveErrors(t *testing.T) {
	eachFaultyCall(t, 4, func(t *testing.T, f fault, k int) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 2, 1)
		call := exhaust(t, p, op)
		p.faults.Decide(failWriteCall(k, f))
		_, err := admin.Redrive(t.Context(), p, redrive(call))
		p.faults.Decide(nil)
		if err == nil {
			wantState(t, p.mem, call, store.Pending)
		} else if _, err := admin.Redrive(t.Context(), p, redrive(call)); err != nil && !errors.Is(err, admin.ErrNotFailed) {
			t.Errorf("Redrive again: %v", err)
		}
		if got := progress(t, p.mem, call); got.Redrives != 1 {
			t.Errorf("%+v, want one redrive", got)
		}
		if notes, err := admin.Notes(t.Context(), p, call.ID()); err != nil || len(notes) != 1 {
			t.Errorf("Notes = %v, %v, want one", notes, err)
		}
		work(t, p, op, returns("v")).want(t, "v", false)
	})
}

// TestReschedule moves what waits, either way, and nothing else.
func TestReschedule(t *testing.T) {
	eachExisting(t, func(t *testing.T, s existingState) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		call := op.Call(me, "k", "in")
		createExisting(t, p.mem, call, s)
		before := record(t, p.mem, call)
		for _, delay := range []time.Duration{time.Hour, 0, time.Minute} {
			now, err := admin.Reschedule(t.Context(), p, call.ID(), delay)
			if s != pending {
				if !errors.Is(err, admin.ErrNotPending) || record(t, p.mem, call).Token != before.Token {
					t.Errorf("Reschedule: %v, want ErrNotPending", err)
				}
				continue
			}
			r := wantState(t, p.mem, call, store.Pending)
			wantDue(t, r, delay)
			if err != nil || now.Token != r.Token || r.Attempt != before.Attempt || r.Expire != 0 {
				t.Errorf("Reschedule = %+v, %v, and the current record is %+v", now.Token, err, r)
			}
			if !slices.Equal(r.Outcome, before.Outcome) {
				t.Errorf("its history became %s", r.Outcome)
			}
		}
	})
}

// TestRescheduleErrors: with each of its calls.
func TestRescheduleErrors(t *testing.T) {
	eachFaultyCall(t, 3, func(t *testing.T, f fault, k int) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
		p.faults.Decide(failWriteCall(k, f))
		_, err := admin.Reschedule(t.Context(), p, call.ID(), time.Hour)
		p.faults.Decide(nil)
		if err == nil && f.Result == nil {
			wantDue(t, wantState(t, p.mem, call, store.Pending), time.Hour)
		}
		if err != nil && !errors.Is(err, semel.ErrUnavailable) && !errors.Is(err, semel.ErrInProgress) {
			t.Errorf("Reschedule: %v, want an error that allows a retry", err)
		}
		check.Must(admin.Reschedule(t.Context(), p, call.ID(), 0))(t)
		work(t, p, op, returns("v")).want(t, "v", false)
	})
}
