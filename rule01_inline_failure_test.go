package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
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

// commitFaults are the faults of one commit.
func commitFaults() []fault {
	return []fault{commitApplied(), commitDropped(), commitRefused(), commitNoted()}
}

// TestRule01InlineFailureIsRepeated: if the commit of a stored failure fails, the
// same write with the same owner is repeated, and the failure is reported only
// after it was applied.
func TestRule01InlineFailureIsRepeated(t *testing.T) {
	eachFault(t, commitFaults(), func(t *testing.T, f fault) {
		p, call := soloCall(t, semel.OperationOptions[string]{OnError: semel.Keep})
		p.faults.Decide(commits(f))
		doTx(t.Context(), p, call, failsAfter(errBoom)).wantFailure(t, "boom")
		wantState(t, p.mem, call, store.Failed)
		wantEffect(t, p.mem, "e", false)
		owners := map[uint64]bool{}
		for _, c := range p.faults.Changes() {
			owners[c.To.Owner] = true
		}
		check.Equal(t, len(owners), 1, "owners that wrote the failure: %v", owners)
		doTx(t.Context(), p, call, neverTx(t)).wantFailure(t, "boom")
	})
}

// TestRule01InlineFailureWithLostReply: it is proven that nothing was committed; a failure
// that cannot be recorded, final or to be tried again, is not reported.
func TestRule01InlineFailureWithLostReply(t *testing.T) {
	eachInBubble(t, map[string]fault{"cut": {Before: errCut}, "busy": {Busy: true}, "no answer": {Hang: true}}, func(t *testing.T, f fault) {
		for fnErr, retry := range map[error]*semel.Retry{semel.Final(errBoom): nil, errBoom: steady(1, 1)} {
			p, call := soloCall(t, semel.OperationOptions[string]{Retry: retry})
			p.faults.Decide(func(r request) fault {
				if r.Method == "Atomic" {
					return commitRefused()
				}
				return f
			})
			a := doTx(t.Context(), p, call, failsAfter(fnErr))
			a.wantErr(t, errBoom)
			a.wantRunNow(t, store.NotCommitted, store.Absent)
			if f.Hang {
				check.ErrorIs(t, a.err, context.DeadlineExceeded, "the store's error")
			}
			if _, isFailure := errtype.Find[*semel.Failure](a.err); isFailure {
				t.Errorf("got the failure %v although it is not recorded", a.err)
			}
			wantState(t, p.mem, call, store.Absent)
			p.faults.Decide(nil)
			doTx(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
		}
	})
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
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(commitNoted()))
		s.ask(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
		wantState(t, p.mem, call, store.Succeeded)
	})
}

// TestRule01CommitSuperseded: the certificate finds another's success.
func TestRule01CommitSuperseded(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, other, mem := pair(t, semel.Options{})
		if s.leased {
			s.o.Lease = 3 * time.Second // which is over while the certificate is still under way
		}
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
		asked := blocked(func() answer { return s.ask(t.Context(), p, call, puts("first", "one")) })
		if s.leased {
			pass(3 * time.Second)
		}
		s.ask(t.Context(), other, call, puts("second", "two")).want(t, "two", false)
		close(gate)
		(<-asked).want(t, "two", true)
		wantEffect(t, mem, "first", false)
	})
}
