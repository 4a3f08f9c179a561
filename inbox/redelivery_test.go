package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// TestEarlyRedelivery: a message whose handler failed must not be delivered
// before its Retry delay. An earlier delivery gets the remaining delay and is
// not counted.
func TestEarlyRedelivery(t *testing.T) {
	t.Parallel()
	for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Optimistic, inbox.Leased} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r, clock := inMemoryAt()
			delay := func(errors int) time.Duration { return time.Duration(errors) * time.Minute }
			in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 3, Delay: delay}})
			e := r.engine(t, semel.Options{})
			runs := 0
			deliver := func(ends error) inbox.Result {
				return handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error {
					runs++
					return semel.NotCommitted(ends)
				})
			}
			wantAfter := func(got inbox.Result, after time.Duration) {
				t.Helper()
				want(t, got, inbox.Result{Decision: inbox.Redeliver})
				if got.After > after || got.After <= after-time.Minute {
					t.Errorf("After is %v, want %v", got.After, after)
				}
			}
			wantAfter(deliver(errHandler), time.Minute)
			for range 5 {
				got := deliver(errHandler)
				want(t, got, inbox.Result{Decision: inbox.Redeliver})
				wantErr(t, got, semel.ErrInProgress)
			}
			clock.advance(time.Minute)
			wantAfter(deliver(errHandler), 2*time.Minute)
			clock.advance(2 * time.Minute)
			want(t, deliver(errHandler), inbox.Result{Decision: inbox.Reject, Poisoned: true})
			check.Equal(t, runs, 3, "runs")
		})
	}
}

// TestHandlerDelays: a handler may set the delay itself. A snooze is not an
// error.
func TestHandlerDelays(t *testing.T) {
	t.Parallel()
	r, clock := inMemoryAt()
	in := newInbox(t, "ship", inbox.Options[string]{Retry: semel.Retry{MaxErrors: 2}})
	e := r.engine(t, semel.Options{})
	deliver := func(ends error) inbox.Result {
		return handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error { return ends })
	}
	for range 4 {
		got := deliver(semel.Snooze(10 * time.Minute))
		want(t, got, inbox.Result{Decision: inbox.Redeliver})
		if got.After != 10*time.Minute {
			t.Errorf("After is %v, want 10 minutes", got.After)
		}
		clock.advance(10 * time.Minute)
	}
	if got := deliver(semel.RetryIn(errHandler, 5*time.Minute)); got.Decision != inbox.Redeliver || got.After != 5*time.Minute {
		t.Errorf("got %+v, want Redeliver in 5 minutes", got)
	}
	clock.advance(5 * time.Minute)
	want(t, deliver(errHandler), inbox.Result{Decision: inbox.Reject, Poisoned: true})
}

// TestUnavailableStore: the handler does not run, nothing is counted, and the
// decision is Redeliver.
func TestUnavailableStore(t *testing.T) {
	t.Parallel()
	for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Optimistic, inbox.Leased} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r := inMemory(t)
			down := true
			s := storetest.NewFaultyTx(r.store, func(storetest.Call) storetest.Fault {
				if down {
					return storetest.Refuse()
				}
				return storetest.Fault{}
			})
			e := engineOver(t, s, semel.Options{MaxUnrecorded: -1})
			in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 1, MaxCrashes: 1}})
			runs := 0
			deliver := func() inbox.Result {
				return handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error {
					runs++
					return nil
				})
			}
			for range 3 {
				got := deliver()
				want(t, got, inbox.Result{Decision: inbox.Redeliver})
				wantErr(t, got, semel.ErrUnavailable)
				if got.After < time.Second {
					t.Errorf("After is %v", got.After)
				}
			}
			down = false
			want(t, deliver(), inbox.Result{Decision: inbox.Ack})
			check.Equal(t, runs, 1, "runs")
		})
	}
}

// TestStoppedConsumer: deliveries in progress when the consumer is stopped, and
// later ones, are redelivered and not counted.
func TestStoppedConsumer(t *testing.T) {
	t.Parallel()
	for _, mode := range transactional() {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r := inMemory(t)
			in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 1}})
			e := r.engine(t, semel.Options{})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			for range 3 {
				got := inbox.HandleTx(ctx, in, e, newMessage("shop", "1", "a"), func(ctx context.Context, _ *memory.Tx, _ string) error {
					stop()
					return ctx.Err()
				})
				want(t, got, inbox.Result{Decision: inbox.Redeliver})
				wantErr(t, got, context.Canceled)
			}
			check.Require(t, e.Close(t.Context()))
			got := inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), r.handler(func() {}))
			want(t, got, inbox.Result{Decision: inbox.Redeliver})
			wantErr(t, got, semel.ErrClosed)
			want(t, inbox.HandleTx(t.Context(), in, r.engine(t, semel.Options{}), newMessage("shop", "1", "a"), r.handler(func() {})),
				inbox.Result{Decision: inbox.Ack})
		})
	}
}

// TestFailedStoreCalls: whichever call of the store fails, before or after it
// was applied, a message that is redelivered until it is acknowledged has one
// effect. In the mode Leased the receiver deduplicates by key, and leases expire between
// deliveries.
func TestFailedStoreCalls(t *testing.T) {
	t.Parallel()
	for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Optimistic, inbox.Leased} {
		for _, fault := range []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()} {
			t.Run(mode.String()+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				for k, failed := 1, true; failed; k++ {
					if failed = runWithFailedCall(t, mode, fault, k); !failed && k < 3 {
						t.Errorf("only %d calls were made", k-1)
					}
				}
			})
		}
	}
}

// runWithFailedCall lets the k-th call fail, and reports whether there was one.
func runWithFailedCall(t *testing.T, mode inbox.Mode, fault storetest.Fault, k int) (failed bool) {
	t.Helper()
	r, clock := inMemoryAt()
	s := storetest.NewFaultyTx(r.store, func(c storetest.Call) storetest.Fault {
		if c.N != k {
			return storetest.Fault{}
		}
		failed = true
		return fault
	})
	e, o := engineOver(t, s, semel.Options{}), inbox.Options[string]{Mode: mode}
	if mode == inbox.Leased {
		o.Policy = semel.Keyed()
	}
	in := newInbox(t, "ship", o)
	fail := errHandler // only in the first run
	end := func(err error) error {
		err = errors.Join(err, fail)
		fail = nil
		return err
	}
	charged := make(map[string]bool) // the effects of the receiver, by key
	var got inbox.Result
	for deliveries := 1; got.Decision != inbox.Ack && deliveries < 20; deliveries++ {
		if mode == inbox.Leased {
			got = inbox.Handle(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, _ string) error {
				key, err := semel.ChildKey(ctx, "charge")
				charged[key] = true
				return end(err)
			})
			clock.advance(time.Minute)
			continue
		}
		got = inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx *memory.Tx, payload string) error {
			return end(r.effect(ctx, tx, payload))
		})
	}
	if n := r.effects("a") + len(charged); got.Decision != inbox.Ack || n != 1 {
		t.Errorf("with call %d failing: %+v, %d effects, want it handled once", k, got, n)
	}
	return failed
}
