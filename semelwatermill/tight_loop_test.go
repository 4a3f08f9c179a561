package semelwatermill_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelwatermill"
)

// TestNoTightLoop: the middleware slows down a broker that redelivers nacked
// messages at once, while another delivery is in progress, while a failed
// message waits for its retry, and while rejected messages have no poison
// queue. The test runs in a synctest bubble.
func TestNoTightLoop(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for name, test := range map[string]struct {
		o      inbox.Options[semel.Raw]
		handle func(run int64) error
		copies int
		runs   int64
		most   int64 // deliveries in ten minutes
	}{
		"InProgress": {
			o:      inbox.Options[semel.Raw]{Mode: inbox.Leased},
			handle: func(int64) error { sleepInBubble(5 * minute); return nil },
			copies: 2, runs: 1, most: 150,
		},
		"StaysAway": {
			o: inbox.Options[semel.Raw]{Retry: semel.Retry{Delay: func(int) time.Duration { return 4 * minute }}},
			handle: func(run int64) error {
				if run == 1 {
					return errHandler
				}
				return nil
			},
			copies: 1, runs: 2, most: 100,
		},
		"Rejected": {
			handle: func(int64) error { return semel.Final(errHandler) },
			copies: 1, runs: 1, most: 700,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var runs, deliveries atomic.Int64
				h := r.wrap(t, newInbox(t, test.o), semelwatermill.Options{MaxWait: 5 * time.Second}, func(*message.Message) ([]*message.Message, error) {
					return nil, test.handle(runs.Add(1))
				})
				deliverRepeatedly(t, test.copies, func(msg *message.Message) error {
					if msg.Context().Err() == nil { // otherwise the subscription is ending and sleep returns at once
						deliveries.Add(1)
					}
					_, err := h(msg)
					return err
				})
				t.Logf("%d deliveries, %d runs", deliveries.Load(), runs.Load())
				if n := deliveries.Load(); n > test.most || n < 2 {
					t.Errorf("%d deliveries in ten minutes, want at most %d", n, test.most)
				}
				check.Equal(t, runs.Load(), test.runs, "runs")
			})
		})
	}
}

// deliverRepeatedly delivers copies of one message for ten minutes, each again
// as soon as it is nacked.
func deliverRepeatedly(t *testing.T, copies int, handle func(*message.Message) error) {
	t.Helper()
	pubsub := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	ctx, stop := context.WithCancel(t.Context())
	all := check.Must(pubsub.Subscribe(ctx, "orders"))(t)
	for range copies {
		check.Require(t, pubsub.Publish("orders", delivery(ctx, "1", "a")))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for msg := range all {
			go func() {
				if err := handle(msg); err != nil {
					msg.Nack()
					return
				}
				msg.Ack()
			}()
		}
	}()
	sleepInBubble(10 * time.Minute)
	stop()
	<-ended
	check.NoError(t, pubsub.Close())
	synctest.Wait()
}

// sleepInBubble waits for d by the bubble's clock.
func sleepInBubble(d time.Duration) { <-time.After(d) }
