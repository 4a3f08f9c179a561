package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
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
		p, call := soloCall(t, d.o)
		answer := forged(call, 17, fingerprintOf(t, call))
		p.faults.Decide(func(request) fault { return fault{Result: answer} })
		a := d.ask(t.Context(), p, call, never(t))
		a.wantErr(t, semel.ErrUnavailable)
		if !strings.Contains(a.err.Error(), "State(17)") {
			t.Errorf("got %v, want the state named", a.err)
		}
	})
}

// TestRecordWithCollidingID: a record with the same 128-bit id and another key,
// scope or operation is another request. The caller sees nothing of it.
func TestRecordWithCollidingID(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloCall(t, d.o)
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
	})
}

// TestLeaderFindsItsRecordInDoubt: a leader that does not know its outcome returns
// its own error, not the error of a follower. A certain failure settles the doubt.
func TestLeaderFindsItsRecordInDoubt(t *testing.T) {
	type row struct {
		err   error
		state store.State
	}
	eachInBubble(t, map[string]row{
		"unmarked":     {errBoom, store.InDoubt},
		"NotCommitted": {semel.NotCommitted(errBoom), store.InDoubt},
		"Final":        {semel.Final(errBoom), store.Failed},
	}, func(t *testing.T, tt row) {
		p, mem := solo(t, semel.Options{})
		a := do(t.Context(), p, theCall, func(context.Context) (string, error) { setInDoubt(t, mem, theCall); return "", tt.err })
		wantState(t, mem, theCall, tt.state)
		if tt.state == store.Failed {
			a.wantFailure(t, "boom")
			p.seen.want(t, event.Settled)
			return
		}
		a.wantErr(t, errBoom, semel.ErrOutcomeUnknown)
		a.wantRunNow(t, store.Unknown, store.InDoubt)
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
	})
}

var errLater = errors.New("another error")

// TestRecordInDoubtKeepsItsErrors: an operator reads why a record is in doubt, also if an
// attempt with an unknown effect preceded a final error.
func TestRecordInDoubtKeepsItsErrors(t *testing.T) {
	type row struct {
		policy semel.Policy
		errs   []error
	}
	eachInBubble(t, map[string]row{
		"an unknown effect":        {semel.Hold(), []error{errBoom}},
		"after a released attempt": {semel.Hold(), []error{semel.NotCommitted(errLater), errBoom}},
		"a final error after it":   {semel.AtLeastOnce(), []error{errBoom, semel.Final(semel.NotCommitted(errLater))}},
	}, func(t *testing.T, c row) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: c.policy})
		for _, err := range c.errs {
			do(t.Context(), p, call, func(context.Context) (string, error) { return "", err })
		}
		r, _, err := admin.Get(t.Context(), p, "op", me, "k")
		check.Require(t, err)
		check.Equal(t, r.State, store.InDoubt, "state")
		progress, _ := admin.ProgressOf(r)
		check.Equal(t, len(progress.Tries), len(c.errs), "errors")
		for i, try := range progress.Tries {
			check.Equal(t, try, admin.Try{Attempt: uint32(i + 1), Kind: admin.TryError, Error: c.errs[i].Error()}, "attempt %d", i+1)
		}
	})
}
