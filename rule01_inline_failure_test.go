package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// wantFailure checks that the caller received the stored failure.
func (a answer) wantFailure(t *testing.T, message string) {
	t.Helper()
	a.wantErr(t)
	failure, ok := errtype.Find[*semel.Failure](a.err)
	if !ok || failure.Message != message {
		t.Errorf("got %v, want the failure %q", a.err, message)
	}
}

// TestRule01InlineFailureIsRepeated: if the commit of a stored failure fails, the
// same write with the same owner is repeated, and the failure is reported only
// after it was applied.
func TestRule01InlineFailureIsRepeated(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{commitApplied(), commitDropped(), commitRefused(), commitNoted()} {
		t.Run(f.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				call := plain("pay", semel.OperationOptions[string]{OnError: semel.Keep}).Call(me, "k", "in")
				p.faults.Decide(commits(f))
				fn := func(ctx context.Context, tx *memory.Tx) (string, error) {
					_ = tx.Put("e", nil)
					return "", errBoom
				}
				doTx(t.Context(), p, call, fn).wantFailure(t, "boom")
				wantState(t, mem, call, store.Failed)
				wantEffect(t, mem, "e", false)
				owners := map[uint64]bool{}
				for _, c := range p.faults.Changes() {
					owners[c.To.Owner] = true
				}
				if len(owners) != 1 {
					t.Errorf("%d owners wrote the failure, want the one of the attempt", len(owners))
				}
				doTx(t.Context(), p, call, neverTx(t)).wantFailure(t, "boom")
			})
		})
	}
}

// TestRule01InlineFailureLost: another caller has written the record; the answer is
// the current record.
func TestRule01InlineFailureLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("pay", semel.OperationOptions[string]{OnError: semel.Keep}).Call(me, "k", "in")
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				return commitRefused()
			}
			return fault{Gate: gate}
		})
		first := later(func() answer {
			return doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", errBoom })
		})
		synctest.Wait()
		doTx(t.Context(), other, call, puts("e", "winner")).want(t, "winner", false)
		close(gate)
		(<-first).want(t, "winner", true)
	})
}

// TestRule01InlineFailureWithLostReply: it is proven that nothing was committed; a
// final failure is not reported.
func TestRule01InlineFailureWithLostReply(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"cut": {Before: errCut}, "busy": {Busy: true}, "no answer": {Hang: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				call := plain("pay", semel.OperationOptions[string]{}).Call(me, "k", "in")
				p.faults.Decide(func(r request) fault {
					if r.Method == "Atomic" {
						return commitRefused()
					}
					return f
				})
				a := doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", semel.Final(errBoom) })
				a.wantErr(t, errBoom)
				a.wantRunNow(t, store.NotCommitted, store.Absent)
				if _, isFailure := errtype.Find[*semel.Failure](a.err); isFailure {
					t.Errorf("got the failure %v although it is not recorded", a.err)
				}
				wantState(t, mem, call, store.Absent)
				p.faults.Decide(nil)
				doTx(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
			})
		})
	}
}

// TestRule01InlineCommitRefused: the database says that it rolled back, so no
// certificate is needed; its error is not the operation's and is never kept.
func TestRule01InlineCommitRefused(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{})
		s.o.OnError = semel.Keep
		call := plain("pay", s.o).Call(me, "k", "in")
		p.faults.Decide(commits(commitRefused()))
		a := s.ask(t.Context(), p, call, puts("e", "paid"))
		a.wantErr(t, errCut)
		want := store.Absent
		if s.leased {
			want = store.Pending
		}
		a.wantRunNow(t, store.NotCommitted, want)
		wantState(t, mem, call, want)
		wantEffect(t, mem, "e", false)
		s.ask(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
	})
}

// TestRule01ErrorWithACommittedVerdict: the verdict decides, not the
// error beside it.
func TestRule01ErrorWithACommittedVerdict(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, mem := solo(t, semel.Options{})
		call := plain("pay", s.o).Call(me, "k", "in")
		p.faults.Decide(commits(commitNoted()))
		s.ask(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestRule01CommitSuperseded: the certificate finds another's success.
func TestRule01CommitSuperseded(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{}), start(t, mem, semel.Options{})
		call := plain("pay", s.o).Call(me, "k", "in")
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			switch {
			case r.Method == "Atomic":
				return commitDropped()
			case r.To() == store.Pending:
				return fault{Gate: gate}
			case r.MethodN > 1: // heartbeats
				return fault{Before: errCut}
			default:
				return fault{}
			}
		})
		asked := make(chan answer, 1)
		ctx := t.Context()
		if s.leased {
			// The certificate must still be under way when the lease is over.
			s.o.Lease = 3 * time.Second
			call = plain("pay", s.o).Call(me, "k", "in")
		}
		go func() { asked <- s.ask(ctx, p, call, puts("first", "one")) }()
		synctest.Wait()
		if s.leased {
			pass(3 * time.Second)
		}
		s.ask(t.Context(), other, call, puts("second", "two")).want(t, "two", false)
		close(gate)
		(<-asked).want(t, "two", true)
		wantEffect(t, mem, "first", false)
	})
}
