package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 1: Failed and release are written only by the compare-and-swap of the
// current token, and only its success is the proof.

// TestRule01CommitWithoutAnswerThatCommitted: the certificate says so, or the verdict does, and
// not the error beside it.
func TestRule01CommitWithoutAnswerThatCommitted(t *testing.T) {
	eachPair(t, anyTxModes(), byName(fault.String, commitApplied(), commitNoted()), func(t *testing.T, s txMode, f fault) {
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(f))
		s.ask(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
		wantEffect(t, p.mem, "e", true)
		wantState(t, p.mem, call, store.Succeeded)
		check.Equal(t, p.seen.count(event.AmbiguousYes) > 0, f.After != nil, "a commit without an answer was observed")
		s.ask(t.Context(), p, call, neverTx(t)).want(t, "paid", true)
	})
}

// TestRule01CommitWithoutAnswerThatDidNotCommit: after NotCommitted is reported, a commit that is
// still in flight in the database finds another record.
func TestRule01CommitWithoutAnswerThatDidNotCommit(t *testing.T) {
	type row struct {
		commit fault
		fnErr  error
		want   []error
	}
	eachPair(t, anyTxModes(), map[string]row{
		"rolled back":              {commitDropped(), nil, []error{errCut}},
		"still open":               {commitOpen(), nil, nil},
		"rolled back for an error": {commitDropped(), semel.NotCommitted(context.Canceled), []error{context.Canceled}}, // never kept
	}, func(t *testing.T, s txMode, tt row) {
		s.o.OnError = semel.Keep
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(tt.commit))
		a := s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			v, err := puts("first", "one")(ctx, tx)
			return v, errors.Join(err, tt.fnErr)
		})
		a.wantErr(t, tt.want...)
		a.wantRunNow(t, store.NotCommitted, store.Pending)
		if errors.Is(a.err, semel.ErrOutcomeUnknown) {
			t.Errorf("got %v, want the outcome to be known", a.err)
		}
		if tt.commit.Open {
			check.ErrorIs(t, p.faults.Release(), store.ErrSuperseded, "the late commit")
		}
		wantEffect(t, p.mem, "first", false)
		check.Equal(t, wantState(t, p.mem, call, store.Pending).Attempt, 1, "attempt: is void")
		if tt.fnErr == nil {
			p.seen.want(t, event.AmbiguousNo)
		}
		s.ask(t.Context(), p, call, puts("second", "two")).want(t, "two", false)
		wantEffect(t, p.mem, "second", true)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Attempt, 2, "attempt: succeeded")
	})
}

// TestRule01CertificateRepeatsWhileBusy: an answer of Busy is no answer.
func TestRule01CertificateRepeatsWhileBusy(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, call := soloCall(t, s.o)
		released := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				return commitOpen()
			}
			select {
			case <-released:
				return fault{}
			default:
				return fault{Busy: r.To() == store.Pending}
			}
		})
		asked := later(func() answer { return s.ask(t.Context(), p, call, puts("e", "paid")) })
		pass(time.Second)
		if n := p.faults.CallsOf("Swap"); n < 5 {
			t.Errorf("the certificate was tried %d times in a second of Busy, want retries", n)
		}
		check.NoError(t, p.faults.Release(), "the open transaction's commit")
		close(released)
		(<-asked).want(t, "paid", false)
		wantEffect(t, p.mem, "e", true)
		p.seen.want(t, event.AmbiguousYes)
		check.Equal(t, p.faults.CallsOf("Get"), 0, "plain reads (a read is no certificate)")
	})
}

// TestRule01NoCertificateIsUnknown: without a reply within RecordTimeout the caller
// gets "outcome unknown", and never "failed"; the truth is found out later.
func TestRule01NoCertificateIsUnknown(t *testing.T) {
	eachPair(t, txModes(), map[string]fault{
		"busy": {Busy: true}, "cut": {Before: errCut}, "no answer": {Hang: true}, "refused": {Result: &store.SwapResult{Err: errBoom}},
	}, func(t *testing.T, s txMode, f fault) {
		const bound = 3 * time.Second
		p, call := soloWith(t, semel.Options{RecordTimeout: bound}, s.o)
		p.faults.Decide(func(r request) fault {
			switch {
			case r.Method == "Atomic":
				return commitApplied()
			case r.To() == store.Pending:
				return f
			default:
				return fault{}
			}
		})
		began := time.Now()
		a := s.ask(t.Context(), p, call, puts("e", "paid"))
		if took := time.Since(began); took > bound {
			t.Errorf("the answer took %v, want at most RecordTimeout", took)
		}
		a.wantErr(t, semel.ErrOutcomeUnknown)
		if _, failed := errtype.Find[*semel.Failure](a.err); failed || semel.VerdictOf(a.err) != store.Unknown {
			t.Errorf("got %v, verdict %v; want Unknown and no failure", a.err, semel.VerdictOf(a.err))
		}
		if semel.RetryAfter(a.err) <= 0 {
			t.Error("RetryAfter of an unknown outcome is zero, want a delay")
		}
		wantState(t, p.mem, call, store.Succeeded)
		p.faults.Decide(nil)
		s.ask(t.Context(), p, call, neverTx(t)).want(t, "paid", true)
	})
}

// TestRule01LateCertificate: a certificate without a reply is repeated in the
// background, so that the key is free before its lease expires.
func TestRule01LateCertificate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloWith(t, semel.Options{Lease: time.Hour}, semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Hour})
		p.faults.Decide(func(r request) fault {
			switch {
			case r.Method == "Atomic":
				return commitDropped()
			case r.To() == store.Pending:
				return fault{Before: errCut}
			default:
				return fault{}
			}
		})
		doTx(t.Context(), p, call, puts("e", "paid")).wantErr(t, semel.ErrOutcomeUnknown)
		wantState(t, p.mem, call, store.InProgress)
		p.faults.Decide(nil)
		pass(time.Minute)
		wantState(t, p.mem, call, store.Pending)
		p.seen.want(t, event.Late, event.LateRecorded)
		doTx(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
	})
}

// TestRule01LostFailureIsNotReported: a leader that was taken over and then fails
// answers from the current record.
func TestRule01LostFailureIsNotReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{Policy: semel.Keyed()})
		zombie := do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.faults.Decide(func(request) fault { return fault{Before: errCut} })
			<-ctx.Done() // the lease is over
			do(t.Context(), other, call, returns("winner")).want(t, "winner", false)
			p.faults.Decide(nil)
			return "", semel.Final(errBoom)
		})
		zombie.want(t, "winner", true)
		wantState(t, p.mem, call, store.Succeeded)
		p.seen.want(t, event.Fenced)
		p.seen.wantNone(t, event.Failed)
	})
}

// TestRule01UnconfirmedFailureIsNotReported: a failure whose record got no answer
// is unknown, until the record says it.
func TestRule01UnconfirmedFailureIsNotReported(t *testing.T) {
	eachInBubble(t, map[string]fault{"not applied": {Before: errCut}, "applied": {After: errCut}, "hanging": {Hang: true}}, func(t *testing.T, f fault) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		p.faults.Decide(failTo(store.Failed, f))
		a := do(t.Context(), p, call, fails(semel.Final(errBoom)))
		a.wantErr(t, semel.ErrOutcomeUnknown, errBoom)
		p.faults.Decide(nil)
		pass(time.Minute)
		wantState(t, p.mem, call, store.Failed)
		do(t.Context(), p, call, never(t)).wantFailure(t, "boom")
	})
}

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

// TestRule01InlineCommitRefused: the database says that it did not begin or that it rolled back,
// so no certificate is needed. The error is the store's and not the operation's, and is never kept.
func TestRule01InlineCommitRefused(t *testing.T) {
	eachPair(t, txModes(), map[string]fault{"begin": {Before: errCut}, "commit": commitRefused()}, func(t *testing.T, s txMode, f fault) {
		s.o.OnError = semel.Keep
		p, call := soloCall(t, s.o)
		p.faults.Decide(everyCommit(f))
		a := s.ask(t.Context(), p, call, puts("e", "paid"))
		a.wantErr(t, semel.ErrUnavailable, errCut)
		if errors.Is(a.err, semel.ErrOutcomeUnknown) || semel.RetryAfter(a.err) == 0 {
			t.Errorf("got %v, want one that says when to retry", a.err)
		}
		if s.leased || f.Before == nil {
			a.wantRunNow(t, store.NotCommitted, s.rolledBack())
		}
		wantState(t, p.mem, call, s.rolledBack())
		wantEffect(t, p.mem, "e", false)
		p.faults.Decide(nil)
		s.ask(t.Context(), start(t, p.mem, semel.Options{}), call, puts("e", "paid")).want(t, "paid", false)
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
