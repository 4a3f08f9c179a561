package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		fingerprint := fingerprintOf(t, call)
		p.faults.Decide(func(r request) fault {
			answer := forged(call, store.Pending, fingerprint)
			answer.Token.Owner = uint64(r.MethodN)
			answer.Record.Owner = uint64(r.MethodN)
			return fault{Result: answer}
		})
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
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
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, func(context.Context) (string, error) {
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
	t.Parallel()
	for name, err := range map[string]error{"unmarked": errBoom, "NotCommitted": semel.NotCommitted(errBoom)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				a := do(t.Context(), p, call, func(context.Context) (string, error) { setInDoubt(t, mem, call); return "", err })
				a.wantErr(t, errBoom, semel.ErrOutcomeUnknown)
				a.wantRunNow(t, store.Unknown, store.InDoubt)
				wantState(t, mem, call, store.InDoubt)
			})
		})
	}
}

// TestLateLeaderSettlesAFailure, because its certificate proves that nothing was
// committed.
func TestLateLeaderSettlesAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, func(context.Context) (string, error) {
			setInDoubt(t, mem, call)
			return "", semel.Final(errBoom)
		}).wantFailure(t, "boom")
		wantState(t, mem, call, store.Failed)
		p.seen.want(t, event.Settled)
	})
}

func TestUnrecordedDoubtIsNotReported(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		f    fault
		want error
	}{
		"cut": {fault{Before: errCut}, semel.ErrUnavailable}, "busy": {fault{Busy: true}, semel.ErrInProgress},
		"refused": {fault{Result: &store.SwapResult{Err: errCut}}, semel.ErrUnavailable}, "no answer": {fault{Hang: true}, semel.ErrUnavailable},
	}
	for name, tt := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
				createExisting(t, mem, call, expired)
				p := start(t, mem, semel.Options{})
				p.faults.Decide(func(r request) fault {
					if r.To() == store.InDoubt {
						return tt.f
					}
					return fault{}
				})
				do(t.Context(), p, call, never(t)).wantErr(t, tt.want)
				doTx(t.Context(), p, call, neverTx(t)).wantErr(t, tt.want)
				wantState(t, mem, call, store.InProgress)
				p.faults.Decide(nil)
				do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
			})
		})
	}
}

// TestFollowersShareInProgress: the leader's key is in progress in another
// process. Its followers receive the same answer.
func TestFollowersShareInProgress(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		d.ask(t.Context(), p, call, func(context.Context) (string, error) {
			gate := make(chan struct{})
			other.faults.Decide(func(request) fault { return fault{Gate: gate} })
			var callers []<-chan answer
			for range 10 {
				callers = append(callers, later(func() answer { return d.ask(t.Context(), other, call, never(t)) }))
			}
			synctest.Wait()
			gone, hangUp := context.WithCancel(t.Context())
			left := later(func() answer { return d.ask(gone, other, call, never(t)) })
			synctest.Wait()
			hangUp()
			(<-left).wantErr(t, context.Canceled)
			close(gate)
			for _, c := range callers {
				(<-c).wantErr(t, semel.ErrInProgress)
			}
			if n := other.faults.Calls(); n > 1 {
				t.Errorf("the store was called %d times, want one answer for all", n)
			}
			return "v", nil
		}).want(t, "v", false)
	})
}

// TestPollingEnds when the caller cancels, and when the store fails during
// polling.
func TestPollingEnds(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		d.ask(t.Context(), p, call, func(context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			d.ask(ctx, other, call, never(t)).wantErr(t, context.DeadlineExceeded)
			time.AfterFunc(5*time.Second, other.crash)
			d.ask(t.Context(), other, call, never(t)).wantErr(t, semel.ErrUnavailable)
			return "v", nil
		}).want(t, "v", false)
		other.faults.Decide(nil)
	})
}

// TestReplayedFailures: the failure is marked as replayed for every caller but the
// first.
func TestReplayedFailures(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		for i := range 3 {
			a := d.ask(t.Context(), p, call, fails(semel.Final(errBoom)))
			a.wantFailure(t, "boom")
			if got := semel.Replayed(a.err); got != (i > 0) || a.err.Error() != "boom" {
				t.Errorf("asker %d: Replayed(%v) = %v", i, a.err, got)
			}
		}
		if semel.Replayed(nil) || semel.Replayed(errBoom) || semel.Replayed(&semel.Failure{}) {
			t.Error("Replayed of what is no replay")
		}
	})
}

// TestErrorTexts: the text names first what happened to the key, then the cause.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	tests := map[string]error{
		"semel: op did not happen and may be tried again with the same key: boom":                                                      &semel.AttemptError{Operation: "op", Verdict: store.NotCommitted, State: store.Pending, Err: errBoom},
		"semel: op may or may not have happened: boom":                                                                                 &semel.AttemptError{Operation: "op", State: store.InProgress, Err: errBoom},
		"semel: op has an unknown outcome and is in doubt (mark errors that prove that nothing was committed with NotCommitted): boom": &semel.AttemptError{Operation: "op", State: store.InDoubt, Err: errBoom},
		"semel: Key is missing": &semel.FieldError{Field: "Key", Reason: "is missing"},
		"c: m":                  &semel.Failure{Code: "c", Message: "m"},
		"m":                     &semel.Failure{Message: "m"},
		"boom":                  semel.Final(errBoom),
	}
	for want, err := range tests {
		if got := err.Error(); got != want {
			t.Errorf("%T says %q, want %q", err, got, want)
		}
	}
	if semel.VerdictOf(nil) != store.Committed || semel.VerdictOf(errBoom) != store.Unknown || semel.RetryAfter(nil) != 0 {
		t.Error("VerdictOf or RetryAfter of no error and of a stranger's")
	}
}

func TestNamesOfCallsAndOperations(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{})
	if op.Name() != "op" || op.Call(me, "k", "in").Operation() != "op" {
		t.Errorf("the operation is called %q", op.Name())
	}
	var none semel.Call
	if none.Operation() != "" || none.Key() != "" || none.Scope() != (semel.Scope{}) || none.ID() != (store.ID{}) {
		t.Error("the zero Call names something")
	}
}

// TestRollbackWithLostReplyAndLostRecord: a function error whose rollback is
// unconfirmed is not reported as a success when the record is absent.
func TestRollbackWithLostReplyAndLostRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, pending)
		p := start(t, mem, semel.Options{})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				return commitDropped()
			}
			return fault{Result: new(store.SwapResult)} // it has been purged
		})
		a := doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", errBoom })
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
