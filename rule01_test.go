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
)

// Rule 1: Failed and release are written only by the compare-and-swap of the
// current token, and only its success is the proof.

func TestRule01CommitWithoutAnswerThatCommitted(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(commitApplied()))
		s.ask(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
		wantEffect(t, p.mem, "e", true)
		wantState(t, p.mem, call, store.Succeeded)
		p.seen.want(t, event.AmbiguousYes)
		s.ask(t.Context(), p, call, neverTx(t)).want(t, "paid", true)
	})
}

func TestRule01CommitWithoutAnswerThatDidNotCommit(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(commitDropped()))
		a := s.ask(t.Context(), p, call, puts("e", "paid"))
		a.wantErr(t, errCut)
		a.wantRunNow(t, store.NotCommitted, store.Pending)
		if errors.Is(a.err, semel.ErrOutcomeUnknown) {
			t.Errorf("got %v, want the outcome to be known", a.err)
		}
		wantEffect(t, p.mem, "e", false)
		check.Equal(t, wantState(t, p.mem, call, store.Pending).Attempt, 1, "attempt: is void")
		p.seen.want(t, event.AmbiguousNo)
		s.ask(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Attempt, 2, "attempt: succeeded")
	})
}

// TestRule01CommitThatWouldComeLater: after NotCommitted is reported, a commit that
// is still in flight in the database finds another record.
func TestRule01CommitThatWouldComeLater(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		p, call := soloCall(t, s.o)
		p.faults.Decide(commits(commitOpen()))
		a := s.ask(t.Context(), p, call, puts("first", "one"))
		a.wantRunNow(t, store.NotCommitted, store.Pending)
		check.ErrorIs(t, p.faults.Release(), store.ErrSuperseded, "the late commit")
		wantEffect(t, p.mem, "first", false)
		s.ask(t.Context(), p, call, puts("second", "two")).want(t, "two", false)
		wantEffect(t, p.mem, "second", true)
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
	for name, f := range map[string]fault{
		"busy": {Busy: true}, "cut": {Before: errCut}, "no answer": {Hang: true}, "refused": {Result: &store.SwapResult{Err: errBoom}},
	} {
		t.Run(name, func(t *testing.T) {
			eachTxMode(t, func(t *testing.T, s txMode) {
				const bound = 3 * time.Second
				p, mem := solo(t, semel.Options{RecordTimeout: bound})
				call := plain("pay", s.o).Call(me, "k", "in")
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
				wantState(t, mem, call, store.Succeeded)
				p.faults.Decide(nil)
				s.ask(t.Context(), p, call, neverTx(t)).want(t, "paid", true)
			})
		})
	}
}

// TestRule01LateCertificate: a certificate without a reply is repeated in the
// background, so that the key is free before its lease expires.
func TestRule01LateCertificate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{Lease: time.Hour})
		call := plain("pay", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Hour}).Call(me, "k", "in")
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
		wantState(t, mem, call, store.InProgress)
		p.faults.Decide(nil)
		pass(time.Minute)
		wantState(t, mem, call, store.Pending)
		p.seen.want(t, event.Late, event.LateRecorded)
		doTx(t.Context(), p, call, puts("e", "paid")).want(t, "paid", false)
	})
}

// TestRule01LostFailureIsNotReported: a leader that was taken over and then fails
// answers from the current record.
func TestRule01LostFailureIsNotReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, mem := pair(t, semel.Options{})
		call := plain("pay", semel.OperationOptions[string]{Policy: semel.Keyed()}).Call(me, "k", "in")
		zombie := do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.faults.Decide(func(request) fault { return fault{Before: errCut} })
			<-ctx.Done() // the lease is over
			do(t.Context(), other, call, returns("winner")).want(t, "winner", false)
			p.faults.Decide(nil)
			return "", semel.Final(errBoom)
		})
		zombie.want(t, "winner", true)
		wantState(t, mem, call, store.Succeeded)
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
