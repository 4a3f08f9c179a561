package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 8: outside a transaction an error is NotCommitted only if it is marked or
// classified; everything else is Unknown. What NotCommitted leads to is the
// operation's choice. A refusal speaks for its own attempt only.

var errRefused = errors.New("refused")

// classifies knows errRefused, and nothing else.
func classifies(err error) store.Verdict {
	if errors.Is(err, errRefused) {
		return store.NotCommitted
	}
	return store.Unknown
}

// failing is a way for a function to fail.
type failing struct {
	name   string
	err    error
	proven bool // that nothing was committed
	final  bool
	kept   bool // under Keep
}

func failings() map[string]failing {
	deep := func(err error) error { return fmt.Errorf("call the bank: %w", err) }
	return byName(func(f failing) string { return f.name },
		failing{name: "unmarked", err: errBoom},
		failing{name: "classified", err: deep(errRefused), proven: true, kept: true},
		failing{name: "NotCommitted", err: semel.NotCommitted(errBoom), proven: true, kept: true},
		failing{name: "NotCommitted, deep", err: deep(semel.NotCommitted(errBoom)), proven: true, kept: true},
		failing{name: "Final", err: semel.Final(errBoom), proven: true, final: true, kept: true},
		failing{name: "Final, deep", err: deep(semel.Final(errBoom)), proven: true, final: true, kept: true},
		failing{name: "context's", err: context.DeadlineExceeded},
		failing{name: "context's, NotCommitted", err: semel.NotCommitted(deep(context.Canceled)), proven: true},
		failing{name: "lease's, NotCommitted", err: semel.NotCommitted(deep(semel.ErrLeaseLost)), proven: true})
}

// expectedEnd is how an attempt ends.
type expectedEnd struct {
	state   store.State
	verdict store.Verdict
	retry   time.Duration
}

var (
	endFailed   = expectedEnd{store.Failed, store.NotCommitted, 0}
	endReleased = expectedEnd{store.Pending, store.NotCommitted, 0}
	endInDoubt  = expectedEnd{store.InDoubt, store.Unknown, time.Second}
	endRequeued = expectedEnd{store.Pending, store.Unknown, time.Second}
	endHealed   = expectedEnd{store.Succeeded, store.Committed, 0}
)

// leads is the table of rule 8 for attempts that follow none.
func (f failing) leads(pc policyCase, onError semel.OnError) expectedEnd {
	proven := f.proven || pc.name == "Atomic"
	kept := f.final || onError == semel.Keep && (f.kept || proven && f.err == errBoom) //nolint:errorlint // this very one
	switch {
	case proven && kept:
		return endFailed
	case proven:
		return endReleased
	case pc.found:
		return endHealed
	case pc.again:
		return endRequeued
	default:
		return endInDoubt
	}
}

func TestRule08ErrorsOfDo(t *testing.T) {
	eachPair(t, policies(), failings(), func(t *testing.T, pc policyCase, f failing) {
		for _, onError := range []semel.OnError{semel.Release, semel.Keep} {
			t.Logf("OnError: %v", onError)
			p, call := soloCall(t, semel.OperationOptions[string]{Policy: pc.p, OnError: onError, Classify: classifies})
			a := do(t.Context(), p, call, p.run(fails(f.err)))
			wantEnd(t, a, f.err, wantState(t, p.mem, call, f.leads(pc, onError).state), f.leads(pc, onError))
		}
	})
}

// wantEnd checks the caller's error and the record after an error that led to
// want.
func wantEnd(t *testing.T, a answer, fnErr error, r store.Record, want expectedEnd) {
	t.Helper()
	check.Equal(t, semel.VerdictOf(a.err), want.verdict, "VerdictOf(%v)", a.err)
	check.Equal(t, semel.RetryAfter(a.err), want.retry, "RetryAfter(%v)", a.err)
	check.Equal(t, errors.Is(a.err, semel.ErrOutcomeUnknown), (want.verdict == store.Unknown), "%v is ErrOutcomeUnknown: with verdict %v", a.err, want.verdict)
	switch want.state {
	case store.Succeeded:
		a.want(t, "found", false)
	case store.Failed:
		a.wantFailure(t, fnErr.Error())
	case store.Absent, store.Pending, store.InProgress, store.InDoubt:
		a.wantErr(t, fnErr)
		a.wantRunNow(t, want.verdict, want.state)
		if r.State == store.Pending && (r.Due > 0 || want.verdict == store.Unknown && !r.Tainted) {
			t.Errorf("it waits for %v, tainted %v, after %v; want it due, and tainted if the outcome is unknown", r.Due, r.Tainted, want.verdict)
		}
	}
}

func TestRule08ErrorsInATransaction(t *testing.T) {
	eachPair(t, txModes(), failings(), func(t *testing.T, s txMode, f failing) {
		for _, onError := range []semel.OnError{semel.Release, semel.Keep} {
			t.Logf("OnError: %v", onError)
			s.o.OnError = onError
			p, call := soloCall(t, s.o)
			a := s.ask(t.Context(), p, call, failsAfter(f.err))
			want := f.leads(policyCase{name: "Atomic"}, onError)
			if want == endReleased {
				want.state = s.rolledBack()
			}
			wantEnd(t, a, f.err, wantState(t, p.mem, call, want.state), want)
			wantEffect(t, p.mem, "e", false)
		}
	})
}

// TestRule08RejectionCoversOnlyItsOwnAttempt: after a takeover Failed needs proof
// for the attempts before, which Keyed and Fenced have and AtLeastOnce has not.
func TestRule08RejectionCoversOnlyItsOwnAttempt(t *testing.T) {
	type row struct {
		p             semel.Policy
		keep, release expectedEnd
	}
	policies := map[string]row{
		"Keyed":       {semel.Keyed(), endFailed, endReleased},
		"Fenced":      {semel.Fenced(raises(nil), finds("", false)), endFailed, endReleased},
		"AtLeastOnce": {semel.AtLeastOnce(), endInDoubt, endRequeued},
		"Atomic":      {semel.Atomic(), endFailed, endReleased},
	}
	// What happens to the expired attempt before the next one.
	before := map[string]func(t *testing.T, p *process, c semel.Call){
		"taken over": func(*testing.T, *process, semel.Call) {},
		"swept":      sweepOne,
		"released after a takeover": func(t *testing.T, p *process, c semel.Call) {
			for range 2 {
				do(t.Context(), p, c, fails(semel.NotCommitted(errBoom)))
			}
		},
	}
	eachPair(t, policies, before, func(t *testing.T, tt row, taint func(t *testing.T, p *process, c semel.Call)) {
		for onError, want := range map[semel.OnError]expectedEnd{semel.Keep: tt.keep, semel.Release: tt.release} {
			t.Logf("OnError: %v", onError)
			// The attempts before have the same policy and are not kept.
			released := plain("op", semel.OperationOptions[string]{Policy: tt.p})
			p, mem := owned(t, released)
			createExisting(t, mem, released.Call(me, "k", "in"), expired)
			taint(t, p, released.Call(me, "k", "in"))
			call := plain("op", semel.OperationOptions[string]{Policy: tt.p, OnError: onError}).Call(me, "k", "in")
			a := do(t.Context(), start(t, mem, semel.Options{}), call, fails(semel.NotCommitted(errBoom)))
			r := wantState(t, mem, call, want.state)
			wantEnd(t, a, errBoom, r, want)
			check.Equal(t, r.Tainted, tt.p.String() != "Atomic", "tainted")
		}
	})
}

// TestRule08AtLeastOnceNeverFailsOnAFinalErrorAfterATakeover, however it is
// marked, until a person says that nothing happened.
func TestRule08AtLeastOnceNeverFailsOnAFinalErrorAfterATakeover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.AtLeastOnce()})
		createExisting(t, p.mem, call, expired)
		do(t.Context(), p, call, fails(semel.Final(errBoom))).wantRunNow(t, store.Unknown, store.InDoubt)
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
		r := admin.Resolution{ID: call.ID(), To: store.Pending, Actor: "ann", Reason: "looked: nothing happened"}
		if now, err := admin.Resolve(t.Context(), p, r); err != nil || now.Tainted {
			t.Errorf("Resolve: tainted %v, %v; want no taint", now.Tainted, err)
		}
		do(t.Context(), p, call, fails(semel.Final(errBoom))).wantFailure(t, "boom")
	})
}

// TestRule08InlineOverATaintedRecordKeepsNoFailure: an attempt of an earlier program version
// with another policy has an unknown effect. The rollback of a later attempt proves nothing
// about it, however often it is tried again.
func TestRule08InlineOverATaintedRecordKeepsNoFailure(t *testing.T) {
	type row struct {
		o   semel.OperationOptions[string]
		err error
	}
	again := semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: steady(2, 9)}
	eachInBubble(t, map[string]row{
		"kept":         {semel.OperationOptions[string]{OnError: semel.Keep}, semel.Final(errBoom)},
		"retry":        {again, errBoom},
		"retry, final": {again, semel.Final(errBoom)},
	}, func(t *testing.T, tt row) {
		p, mem := solo(t, semel.Options{})
		before := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce()}).Call(me, "k", "in")
		do(t.Context(), p, before, fails(errBoom)).wantRunNow(t, store.Unknown, store.Pending)
		call := plain("op", tt.o).Call(me, "k", "in")
		for range 4 {
			a := doTx(t.Context(), p, call, failsAfter(tt.err))
			a.wantErr(t, errBoom)
			check.Equal(t, semel.VerdictOf(a.err), store.Unknown, "VerdictOf (an earlier attempt may have had an effect)")
			if r := wantState(t, mem, call, store.Pending); !r.Tainted || tt.o.Retry != nil && r.Due <= 0 {
				t.Errorf("it led to %+v, want it tainted, and not due yet if it is delayed", r)
			}
			pass(time.Hour)
		}
		if tt.o.Retry != nil {
			check.Equal(t, progress(t, mem, call).Errors, 4, "errors")
		}
		doTx(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}

func TestRule08MarksOfNilAreNil(t *testing.T) {
	t.Parallel()
	check.NoError(t, semel.NotCommitted(nil), "NotCommitted(nil)")
	check.NoError(t, semel.Final(nil), "Final(nil)")
}

// TestRule08AGivenUpLeaseStaysGivenUp: no heartbeat takes it back while the
// answer to the giving up is waited for.
func TestRule08AGivenUpLeaseStaysGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, other := start(t, mem, semel.Options{RecordTimeout: 15 * time.Second}), start(t, mem, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed()}).Call(me, "k", "in")
		p.faults.Decide(func(r request) fault {
			return fault{Mute: r.To() == store.InProgress && r.Changes[0].To.Due == 0}
		})
		first := later(func() answer { return do(t.Context(), p, call, fails(errBoom)) })
		pass(12 * time.Second) // a heartbeat would have come
		do(t.Context(), other, call, returns("again")).want(t, "again", false)
		p.faults.Decide(nil)
		(<-first).wantErr(t, errBoom, semel.ErrOutcomeUnknown)
	})
}
