package semel_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// receiver is a remote party with a fence, which records its requests.
type receiver struct {
	calls    []string
	fence    uint32
	found    bool
	raiseErr error
	lookErr  error
}

func (r *receiver) raise(_ context.Context, _ semel.Scope, _ string, attempt uint32) error {
	r.calls = append(r.calls, fmt.Sprintf("raise %d", attempt))
	if r.raiseErr == nil {
		r.fence = max(r.fence, attempt)
	}
	return r.raiseErr
}

func (r *receiver) look(context.Context, semel.Scope, string) (any, bool, error) {
	r.calls = append(r.calls, "look")
	return "found", r.found, r.lookErr
}

func (r *receiver) act(ctx context.Context) (string, error) {
	a, _ := semel.AttemptOf(ctx)
	r.calls = append(r.calls, fmt.Sprintf("act %d", a.Number()))
	if a.Number() < r.fence {
		return "", semel.NotCommitted(errRefused)
	}
	return "acted", nil
}

func (r *receiver) op(o semel.OperationOptions[string]) *semel.Operation[string] {
	o.Policy = semel.Fenced(r.raise, r.look)
	return plain("op", o)
}

func (r *receiver) want(t *testing.T, calls ...string) {
	t.Helper()
	if !slices.Equal(r.calls, calls) {
		t.Errorf("the receiver got the calls %q, want %q", r.calls, calls)
	}
}

func TestFenceIsRaisedOnlyAfterAnUnknownAttempt(t *testing.T) {
	want := map[existingState][]string{nothing: {"act 1"}, pending: {"act 2"}, expired: {"raise 2", "look", "act 2"}}
	eachExisting(t, func(t *testing.T, s existingState) {
		p, mem := solo(t, semel.Options{})
		r := new(receiver)
		call := r.op(semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, s)
		do(t.Context(), p, call, r.act)
		r.want(t, want[s]...)
	})
}

// TestFenceStopsAZombie: an attempt that was taken over sends its request too late,
// is rejected, and returns the current outcome.
func TestFenceStopsAZombie(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, _ := pair(t, semel.Options{})
		r := new(receiver)
		call := r.op(semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.faults.Decide(func(request) fault { return fault{Before: errCut} })
			pass(2 * lease)
			do(t.Context(), other, call, r.act).want(t, "acted", false)
			p.faults.Decide(nil)
			return r.act(ctx)
		}).want(t, "acted", true)
		r.want(t, "raise 2", "look", "act 2", "act 1")
	})
}

// TestFenceErrorProvesNothing: however an error of raising or looking is marked
// or classified, an earlier attempt may have had its effect. It is not acted,
// never Failed, and the next attempt begins with the fence again.
func TestFenceErrorProvesNothing(t *testing.T) {
	receivers := map[string]*receiver{}
	for _, f := range failings() {
		receivers["raise/"+f.name], receivers["look/"+f.name] = &receiver{raiseErr: f.err}, &receiver{lookErr: f.err}
	}
	eachInBubble(t, receivers, func(t *testing.T, r *receiver) {
		err := cmp.Or(r.raiseErr, r.lookErr)
		p, mem := solo(t, semel.Options{})
		call := r.op(semel.OperationOptions[string]{OnError: semel.Keep, Classify: classifies}).Call(me, "k", "in")
		createExisting(t, mem, call, expired)
		a := do(t.Context(), p, call, r.act)
		wantEnd(t, a, err, wantState(t, mem, call, store.Pending), endRequeued)
		if !strings.HasSuffix(a.err.Error(), "fence: "+err.Error()) {
			t.Errorf("got %v, want it to say where it failed", a.err)
		}
		r.raiseErr, r.lookErr, r.found, r.calls = nil, nil, true, nil
		do(t.Context(), p, call, r.act).want(t, "found", true)
		r.want(t, "raise 3", "look")
	})
}

// TestFenceStaysUpThroughAReleasedAttempt: the taint is kept.
func TestFenceStaysUpThroughAReleasedAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		r := new(receiver)
		call := r.op(semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, expired)
		do(t.Context(), p, call, fails(semel.NotCommitted(errBoom))).wantRunNow(t, store.NotCommitted, store.Pending)
		do(t.Context(), p, call, r.act).want(t, "acted", false)
		r.want(t, "raise 2", "look", "raise 3", "look", "act 3")
	})
}

// TestReceiverProvesEarlierAttempts: under Keyed and Fenced, an error
// that the function marks as NotCommitted is the receiver's answer about all
// attempts, even if it uses up the tries. A canceled key or a snooze does not come
// from the receiver, so it proves nothing about an attempt that has died.
func TestReceiverProvesEarlierAttempts(t *testing.T) {
	type row struct {
		maxErrors int
		err       error // of the next attempt; nil: its key was cancelled meanwhile
		want      store.State
	}
	eachPair(t, map[string]semel.Policy{"Keyed": semel.Keyed(), "Fenced": semel.Fenced(raises(nil), finds("", false))}, map[string]row{
		"used up":             {2, semel.NotCommitted(errBoom), store.Failed},
		"snooze":              {3, semel.Snooze(0), store.Pending},
		"cancelled":           {3, nil, store.InDoubt},
		"the receiver's word": {3, semel.Final(errBoom), store.Failed},
	}, func(t *testing.T, policy semel.Policy, tt row) {
		p, op, call := queuedTask(t, policy, tt.maxErrors, 9)
		work(t, p, op, fails(errors.New("no answer"))) // possibly after its effect
		wantState(t, p.mem, call, store.Pending)
		pass(time.Hour)
		attempts := dequeued(t, p, op, 1)
		err := tt.err
		if err == nil {
			check.Must(admin.Cancel(t.Context(), p, call.ID(), "not any more"))(t)
			adapter.RenewLeases(t.Context(), p, attempts)
			err = semel.NotCommitted(context.Cause(attempts[0].Context()))
		}
		_, verdict := attempts[0].End(nil, err)
		r := wantState(t, p.mem, call, tt.want)
		if got := semel.VerdictOf(verdict); tt.want != store.Failed && (got != store.Unknown || !r.Tainted) {
			t.Errorf("got %v, tainted %t: want Unknown, because the receiver was not called", verdict, r.Tainted)
		}
	})
}

func TestFenceFindsTheEffect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		r := &receiver{found: true}
		call := r.op(semel.OperationOptions[string]{}).Call(me, "k", "in")
		createExisting(t, mem, call, expired)
		do(t.Context(), p, call, r.act).want(t, "found", true)
		do(t.Context(), p, call, r.act).want(t, "found", true)
		r.want(t, "raise 2", "look")
	})
}
