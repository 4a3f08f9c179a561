package semel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// deadLetterIDs lists the dead letters of the operation with that name, or of all.
func deadLetterIDs(t *testing.T, p *process, operation string) map[store.ID]store.State {
	t.Helper()
	found := map[store.ID]store.State{}
	for r, err := range admin.DeadLetters(t.Context(), p, operation) {
		check.Require(t, err, "DeadLetters")
		found[r.ID] = r.State
	}
	return found
}

// TestRule18DeadLettersAreKept until an operator redrives them, under every policy:
// Failed where it is proven that nothing happened, and InDoubt where it is not and the
// policy allows another attempt. Neither the retention of the operation nor a purge
// removes them, and exhaustion is an alarm.
func TestRule18DeadLettersAreKept(t *testing.T) {
	type row struct {
		policy semel.Policy
		err    error
		state  store.State
		dead   bool
	}
	eachInBubble(t, map[string]row{
		"AtLeastOnce, proven":  {semel.AtLeastOnce(), semel.NotCommitted(errBoom), store.Failed, true},
		"AtLeastOnce, unknown": {semel.AtLeastOnce(), errBoom, store.InDoubt, true},
		"Keyed, proven":        {semel.Keyed(), semel.NotCommitted(errBoom), store.Failed, true},
		"Keyed, unknown":       {semel.Keyed(), errBoom, store.InDoubt, true},
		"Atomic":               {semel.Atomic(), errBoom, store.Failed, true},
		"Hold, proven":         {semel.Hold(), semel.NotCommitted(errBoom), store.Failed, true},
		"Hold, unknown":        {semel.Hold(), errBoom, store.InDoubt, false},
	}, func(t *testing.T, tt row) {
		p, op, call := queuedTask(t, tt.policy, 1, 1)
		work(t, p, op, p.run(fails(tt.err)))
		pass(1000 * 24 * time.Hour)
		check.Must(admin.Purge(t.Context(), p, 100))(t)
		r := wantState(t, p.mem, call, tt.state)
		if admin.IsDeadLetter(r) != tt.dead || (len(deadLetterIDs(t, p, "")) == 1) != tt.dead {
			t.Errorf("IsDeadLetter = %v, %d listed, want %v", admin.IsDeadLetter(r), len(deadLetterIDs(t, p, "")), tt.dead)
		}
		if n := p.seen.count(event.Exhausted); (n == 1) != tt.dead {
			t.Errorf("%d alarms of exhaustion, want one: %v", n, tt.dead)
		}
		_, err := admin.Redrive(t.Context(), p, redrive(call))
		if !tt.dead {
			check.ErrorIs(t, err, admin.ErrNotFailed, "Redrive")
			return
		}
		check.NoError(t, err, "Redrive")
		if got := progress(t, p.mem, call); got.Redrives != 1 || got.Errors != 0 || len(got.Tries) != 1 {
			t.Errorf("%+v, want one redrive, and the history", got)
		}
		// The attempt before it may have had its effect, so rule 8 applies to the next one.
		check.Equal(t, record(t, p.mem, call).Tainted, tt.state == store.InDoubt, "tainted")
		work(t, p, op, p.run(returns("v"))).want(t, "v", false)
		if left := deadLetterIDs(t, p, ""); len(left) > 0 {
			t.Errorf("%d dead letters after the redrive, want none", len(left))
		}
	})
}

// TestRedriveByRecordID: a program that was not given the operation redrives
// dead letters, and nothing else.
func TestRedriveByRecordID(t *testing.T) {
	type row struct {
		err  error
		want error
	}
	eachInBubble(t, map[string]row{
		"Failed":                     {semel.NotCommitted(errBoom), nil},
		"InDoubt":                    {errBoom, nil},
		"failed by its own function": {semel.Final(errBoom), admin.ErrNotOwned},
		"forged": {
			semel.Final(&semel.Failure{Code: "exhausted", Details: []byte(`{"errors":10,"tries":[{"attempt":1,"kind":"error"}]}`)}),
			admin.ErrNotOwned,
		},
	}, func(t *testing.T, tt row) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 1, 1)
		work(t, p, op, p.run(fails(tt.err)))
		stranger := start(t, p.mem, semel.Options{})
		check.ErrorIs(t, check.Err(admin.Redrive(t.Context(), stranger, redrive(call))), tt.want, "Redrive")
	})
}

// TestDeadLetterRetention bounds how long a dead letter that has Failed is kept.
func TestDeadLetterRetention(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := retried(semel.AtLeastOnce())
		o.Retry = steady(1, 1)
		o.Retry.DeadLetterRetention = 72 * time.Hour
		op := plain("op", o)
		p, mem := owned(t, op)
		calls := queued(t, p, op, "failed", "doubt")
		for _, a := range dequeued(t, p, op, 2) {
			err := errBoom
			if a.Call().Key() == "failed" {
				err = semel.NotCommitted(errBoom)
			}
			_, _ = a.End(nil, err)
		}
		check.Equal(t, wantState(t, mem, calls[0], store.Failed).Expire, 72*time.Hour, "it expires in")
		pass(73 * time.Hour)
		check.Result(admin.Purge(t.Context(), p, 100))(t, 1, "Purge (want the one that has failed)")
		wantState(t, mem, calls[1], store.InDoubt)
	})
}

// TestListDeadLetters: those of one operation, in all pages and in both
// states, without failures that callers or functions made; and redriven in the loop.
func TestListDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := retried(semel.AtLeastOnce())
		o.Retry = steady(1, 1)
		op, other := plain("op", o), plain("other", o)
		mem := memory.New(memory.Options{})
		p := start(t, mem, semel.Options{Operations: []semel.Declared{op, other}})
		want := map[store.ID]store.State{}
		for n := range store.MaxLimit + 10 {
			call := queued(t, p, op, fmt.Sprint(n))[0]
			switch n % 3 {
			case 0:
				work(t, p, op, fails(semel.NotCommitted(errBoom)))
				want[call.ID()] = store.Failed
			case 1:
				work(t, p, op, fails(errBoom))
				want[call.ID()] = store.InDoubt
			default:
				work(t, p, op, fails(semel.Final(errBoom)))
			}
		}
		queued(t, p, other, "k")
		work(t, p, other, fails(errBoom))
		got := deadLetterIDs(t, p, "op")
		for id, state := range want {
			if got[id] != state {
				t.Fatalf("%v is listed as %v, want %v", id, got[id], state)
			}
		}
		if all := deadLetterIDs(t, p, ""); len(got) != len(want) || len(all) != len(want)+1 {
			t.Errorf("%d of the operation and %d in all, want %d and one more", len(got), len(all), len(want))
		}
		for r, err := range admin.DeadLetters(t.Context(), p, "op") {
			check.Require(t, err, "DeadLetters")
			check.Must(admin.Redrive(t.Context(), p, admin.RedriveRequest{ID: r.ID, Actor: "ann", Reason: "mended"}))(t)
		}
		if left := deadLetterIDs(t, p, "op"); len(left) > 0 {
			t.Errorf("%d dead letters are left, want none", len(left))
		}
	})
}

// TestRejectedMessageIsADeadLetter: the broker redelivers messages, so no caller
// reads their failure; that of a task is its answer.
func TestRejectedMessageIsADeadLetter(t *testing.T) {
	eachPair(t, txModes(), map[string]bool{"message": true, "task": false}, func(t *testing.T, s txMode, dead bool) {
		s.o.Retry = steady(2, 2)
		s.o.Retry.Redelivered = dead
		op := plain("op", s.o)
		p, mem := owned(t, op)
		call := op.Call(me, "k", "k")
		s.ask(t.Context(), p, call, failsAfter(semel.Final(errBoom))).wantErr(t)
		pass(1000 * time.Hour)
		purged := 1
		if dead {
			purged = 0
		}
		check.Result(admin.Purge(t.Context(), p, 100))(t, purged, "Purge")
		check.Equal(t, admin.IsDeadLetter(record(t, mem, call)), dead, "IsDeadLetter")
		check.Equal(t, p.seen.count(event.Rejected), 1-purged, "rejections")
		if dead {
			check.Must(admin.Redrive(t.Context(), p, redrive(call)))(t)
		}
	})
}
