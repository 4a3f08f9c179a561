package inbox_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/realtest"
)

// deliverConcurrently delivers one message to two processes at the same time.
// One delivery is handled. The others get Redeliver while it runs, or are
// duplicates. In the mode Optimistic they may have run, and are rolled back.
func deliverConcurrently[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in := newInbox(t, "ship", inbox.Options[string]{Mode: mode})
	engines := []*semel.Engine[Tx]{r.engine(t, semel.Options{}), r.engine(t, semel.Options{})}
	var acks, duplicates, again atomic.Int64
	var all sync.WaitGroup
	for _, e := range engines {
		for range 4 {
			all.Go(func() {
				var got inbox.Result
				err := realtest.Retry(t.Context(), func() bool {
					got = inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx Tx, payload string) error {
						return r.effect(ctx, tx, payload)
					})
					if got.Decision == inbox.Redeliver {
						again.Add(1)
					}
					return got.Decision != inbox.Redeliver
				})
				switch {
				case err != nil || got.Decision != inbox.Ack:
					t.Errorf("got %+v, %v", got, err)
				case got.Duplicate:
					duplicates.Add(1)
				default:
					acks.Add(1)
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d times Redeliver", again.Load())
	if acks.Load() != 1 || duplicates.Load() != 7 || r.effects("a") != 1 {
		t.Errorf("handled by %d, duplicates %d, effects %d", acks.Load(), duplicates.Load(), r.effects("a"))
	}
}

// TestConcurrentDelivery: the second delivery gets Redeliver, is not counted,
// and runs nothing. After the first has been handled, it is a duplicate.
func TestConcurrentDelivery(t *testing.T) {
	t.Parallel()
	for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Leased} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r := inMemory(t)
			in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 1, MaxCrashes: 1}})
			entered, release := make(chan struct{}), make(chan struct{})
			first := make(chan inbox.Result, 1)
			go func() {
				first <- handleIn(t.Context(), in, r.engine(t, semel.Options{}), newMessage("shop", "1", "a"), func() error {
					close(entered)
					<-release
					return nil
				})
			}()
			select {
			case <-entered:
			case got := <-first:
				t.Fatalf("the first delivery ended before its function ran: %+v", got)
			}
			e := r.engine(t, semel.Options{})
			again := func() inbox.Result {
				return handleIn(t.Context(), in, e, newMessage("shop", "1", "a"), func() error {
					t.Error("the second delivery was handled too")
					return nil
				})
			}
			for range 3 {
				got := again()
				want(t, got, inbox.Result{Decision: inbox.Redeliver})
				wantErr(t, got, semel.ErrInProgress)
			}
			close(release)
			want(t, <-first, inbox.Result{Decision: inbox.Ack})
			want(t, again(), inbox.Result{Decision: inbox.Ack, Duplicate: true})
		})
	}
}

// handleIn handles a message in the inbox's mode, with a function that needs no
// transaction.
func handleIn[Tx any](ctx context.Context, in *inbox.Inbox[string], e *semel.Engine[Tx], m inbox.Message[string], fn func() error) inbox.Result {
	if in.Mode() == inbox.Leased {
		return inbox.Handle(ctx, in, e, m, func(context.Context, string) error { return fn() })
	}
	return inbox.HandleTx(ctx, in, e, m, func(context.Context, Tx, string) error { return fn() })
}

// TestOptimisticRunsBothAndCommitsOne: two deliveries begin before either has
// ended. The loser is rolled back and becomes a duplicate.
func TestOptimisticRunsBothAndCommitsOne(t *testing.T) {
	t.Parallel()
	r := inMemory(t)
	in := newInbox(t, "ship", inbox.Options[string]{Mode: inbox.Optimistic})
	var met sync.WaitGroup
	met.Add(2)
	var ran atomic.Int64
	results := make(chan inbox.Result, 2)
	for range 2 {
		e := r.engine(t, semel.Options{})
		arrive := sync.OnceFunc(met.Done)
		go func() {
			results <- inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), r.handler(func() {
				ran.Add(1)
				arrive()
				met.Wait()
			}))
		}()
	}
	a, b := <-results, <-results
	if a.Decision != inbox.Ack || b.Decision != inbox.Ack || a.Duplicate == b.Duplicate {
		t.Errorf("got %+v and %+v, want one of them handled, and one duplicate", a, b)
	}
	if ran.Load() != 2 || r.effects("a") != 1 {
		t.Errorf("%d runs, %d effects, want 2 and 1", ran.Load(), r.effects("a"))
	}
}

// handler returns a handler that calls before and then has its effect.
func (r *rig[Tx]) handler(before func()) func(context.Context, Tx, string) error {
	return func(ctx context.Context, tx Tx, payload string) error {
		before()
		return r.effect(ctx, tx, payload)
	}
}
