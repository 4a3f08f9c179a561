package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// forged returns the record of call as another program version might have written
// it.
func forged(call semel.Call, s store.State, fingerprint []byte) *store.SwapResult {
	r := store.Record{
		ID: call.ID(), Token: store.Token{State: s, Attempt: 7, Owner: 7}, Due: -1,
		Operation: call.Operation(), Scope: call.Scope().Bytes(), Key: call.Key(), Fingerprint: fingerprint,
	}
	return &store.SwapResult{Token: r.Token, Record: &r}
}

// fingerprintOf is the stored fingerprint of a call.
func fingerprintOf(t *testing.T, c semel.Call) []byte {
	t.Helper()
	mem := memory.New(memory.Options{})
	do(t.Context(), start(t, mem, semel.Options{}), c, returns("v"))
	return record(t, mem, c).Fingerprint
}

// TestStateOfANewerVersion: a state that this program does not know is rejected.
// It is never treated as an absent record.
func TestStateOfANewerVersion(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		answer := forged(call, 17, fingerprintOf(t, call))
		p.faults.Decide(func(request) fault { return fault{Result: answer} })
		a := d.ask(t.Context(), p, call, never(t))
		a.wantErr(t, semel.ErrUnavailable)
		if !strings.Contains(a.err.Error(), "State(17)") {
			t.Errorf("got %v, want the state named", a.err)
		}
		p.faults.Decide(nil)
	})
}

// TestRecordWithCollidingID: a record with the same 128-bit id and another key,
// scope or operation is another request. The caller sees nothing of it.
func TestRecordWithCollidingID(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		for name, spoil := range map[string]func(*store.Record){
			"operation": func(r *store.Record) { r.Operation = "other" },
			"scope":     func(r *store.Record) { r.Scope = "other" },
			"key":       func(r *store.Record) { r.Key = "other" },
		} {
			answer := forged(call, store.Succeeded, fingerprintOf(t, call))
			answer.Record.Outcome = []byte(`j"secret"`)
			spoil(answer.Record)
			p.faults.Decide(func(request) fault { return fault{Result: answer} })
			a := d.ask(t.Context(), p, call, never(t))
			if !errors.Is(a.err, semel.ErrMismatch) || a.v != "" {
				t.Errorf("another %s: got %q, %v, want ErrMismatch", name, a.v, a.err)
			}
			if r, found, err := admin.Get(t.Context(), p, "op", me, "k"); found || err != nil || r.Outcome != nil {
				t.Errorf("Get of another %s = %v, %v", name, found, err)
			}
		}
		p.faults.Decide(nil)
	})
}

// TestRecordThatChangesConstantly: another process always changes the record
// first. The caller stops retrying and receives an error.
func TestRecordThatChangesConstantly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		fingerprint := fingerprintOf(t, theCall)
		p.faults.Decide(func(r request) fault {
			answer := forged(theCall, store.Pending, fingerprint)
			answer.Token.Owner = uint64(r.MethodN)
			answer.Record.Owner = uint64(r.MethodN)
			return fault{Result: answer}
		})
		do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrInProgress)
		if n := p.faults.CallsOf("Swap"); n > 100 {
			t.Errorf("%d calls, want an end", n)
		}
		p.faults.Decide(nil)
	})
}

// TestRecordOfALeaderIsLost: the store has lost the record. The effect may have
// happened, so the outcome is unknown.
func TestRecordOfALeaderIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		do(t.Context(), p, theCall, func(context.Context) (string, error) {
			p.faults.Decide(func(request) fault { return fault{Result: new(store.SwapResult)} })
			return "v", nil
		}).wantErr(t, semel.ErrOutcomeUnknown)
		p.seen.want(t, event.Fenced, event.Conflict)
		p.faults.Decide(nil)
	})
}

// TestLeaderFindsItsRecordInDoubt: a leader that does not know its outcome returns
// its own error, not the error of a follower.
func TestLeaderFindsItsRecordInDoubt(t *testing.T) {
	eachInBubble(t, map[string]error{"unmarked": errBoom, "NotCommitted": semel.NotCommitted(errBoom)}, func(t *testing.T, err error) {
		p, mem := solo(t, semel.Options{})
		a := do(t.Context(), p, theCall, func(context.Context) (string, error) { setInDoubt(t, mem, theCall); return "", err })
		a.wantErr(t, errBoom, semel.ErrOutcomeUnknown)
		a.wantRunNow(t, store.Unknown, store.InDoubt)
		wantState(t, mem, theCall, store.InDoubt)
	})
}

// TestLateLeaderSettlesAFailure, because its certificate proves that nothing was
// committed.
func TestLateLeaderSettlesAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		do(t.Context(), p, theCall, func(context.Context) (string, error) {
			setInDoubt(t, mem, theCall)
			return "", semel.Final(errBoom)
		}).wantFailure(t, "boom")
		wantState(t, mem, theCall, store.Failed)
		p.seen.want(t, event.Settled)
	})
}

func TestUnrecordedDoubtIsNotReported(t *testing.T) {
	type row struct {
		f    fault
		want error
	}
	faults := map[string]row{
		"cut": {fault{Before: errCut}, semel.ErrUnavailable}, "busy": {fault{Busy: true}, semel.ErrInProgress},
		"refused": {fault{Result: &store.SwapResult{Err: errCut}}, semel.ErrUnavailable}, "no answer": {fault{Hang: true}, semel.ErrUnavailable},
	}
	eachInBubble(t, faults, func(t *testing.T, tt row) {
		p, mem := solo(t, semel.Options{})
		createExisting(t, mem, theCall, expired)
		p.faults.Decide(failTo(store.InDoubt, tt.f))
		do(t.Context(), p, theCall, never(t)).wantErr(t, tt.want)
		doTx(t.Context(), p, theCall, neverTx(t)).wantErr(t, tt.want)
		wantState(t, mem, theCall, store.InProgress)
		p.faults.Decide(nil)
		do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrInDoubt)
	})
}

// TestRollbackWithLostReplyAndLostRecord: a function error whose rollback is
// unconfirmed is not reported as a success when the record is absent.
func TestRollbackWithLostReplyAndLostRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		createExisting(t, mem, theCall, pending)
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				return commitDropped()
			}
			return fault{Result: new(store.SwapResult)} // it has been purged
		})
		a := doTx(t.Context(), p, theCall, func(context.Context, *memory.Tx) (string, error) { return "", errBoom })
		a.wantErr(t, semel.ErrOutcomeUnknown)
		p.faults.Decide(nil)
	})
}

// TestRollbackWithLostReply: the certificate proves the rollback, and the caller
// receives the function's own error.
func TestRollbackWithLostReply(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{})
		s.o.OnError = semel.Keep
		call := plain("op", s.o).Call(me, "k", "in")
		p.faults.Decide(everyCommit(commitDropped()))
		a := s.ask(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) {
			return "", semel.NotCommitted(context.Canceled) // never kept
		})
		a.wantErr(t, context.Canceled)
		a.wantRunNow(t, store.NotCommitted, store.Pending)
		wantState(t, mem, call, store.Pending)
		p.faults.Decide(nil)
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}
