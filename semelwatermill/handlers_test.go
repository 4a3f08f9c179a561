package semelwatermill_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelwatermill"
)

// runRouter runs a router with one middleware. topics maps the name of each
// handler to its topic. It delivers the messages of send, by topic, and stops
// the router when the number of acknowledged deliveries is the number of
// messages over all handlers.
func runRouter(t *testing.T, logger watermill.LoggerAdapter, once message.HandlerMiddleware, topics map[string]string, handle func(name string, msg *message.Message) error, send map[string][]*message.Message) {
	t.Helper()
	pubsub := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router := check.Must(message.NewRouter(message.RouterConfig{CloseTimeout: time.Minute}, logger))(t)
	var acked sync.WaitGroup
	for name, topic := range topics {
		acked.Add(len(send[topic]))
		router.AddConsumerHandler(name, topic, pubsub, func(msg *message.Message) error { return handle(name, msg) })
	}
	router.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := next(msg)
			select {
			case <-msg.Nacked():
			default:
				if err == nil {
					acked.Done()
				}
			}
			return out, err
		}
	}, once)
	for topic, all := range send {
		check.Require(t, pubsub.Publish(topic, all...))
	}
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.WithoutCancel(t.Context())) }()
	acked.Wait()
	check.NoError(t, errors.Join(router.Close(), <-ended, pubsub.Close()), "close the router")
}

// TestEachHandlerHandlesEachMessage behind one middleware: two handlers of one
// topic, and a third handler of another topic whose message has the same ID and
// another payload.
func TestEachHandlerHandlesEachMessage(t *testing.T) {
	t.Parallel()
	r, dead := newRig(t), new(letters)
	once := check.Must(semelwatermill.MiddlewareTx(newInbox(t, inbox.Options[semel.Raw]{}), r.Engine, semelwatermill.Options{
		Name: semelwatermill.FromMetadata("producer", "id"), Poison: dead, PoisonTopic: "dead",
	}))(t)
	var mu sync.Mutex
	runs := map[string]int{}
	runRouter(t, watermill.NopLogger{}, once, map[string]string{"ship": "created", "bill": "created", "thank": "paid"},
		func(name string, msg *message.Message) error {
			mu.Lock()
			defer mu.Unlock()
			runs[name+" "+string(msg.Payload)]++
			return nil
		},
		map[string][]*message.Message{
			"created": {delivery(context.Background(), "7", "created"), delivery(context.Background(), "7", "created")},
			"paid":    {delivery(context.Background(), "7", "paid")},
		})
	if want := map[string]int{"ship created": 1, "bill created": 1, "thank paid": 1}; !maps.Equal(runs, want) {
		t.Errorf("handled %v, want %v", runs, want)
	}
	check.Equal(t, len(dead.in("dead")), 0, "dead letters")
}

// TestHandlerAndProducerAreDistinct: names that concatenate to the same text
// are different identities.
func TestHandlerAndProducerAreDistinct(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	once := check.Must(semelwatermill.MiddlewareTx(newInbox(t, inbox.Options[semel.Raw]{}), r.Engine, semelwatermill.Options{
		Name: func(msg *message.Message) (string, string, error) {
			return map[string]string{"a": "b:c", "a:b": "c"}[message.HandlerNameFromCtx(msg.Context())], "1", nil
		},
	}))(t)
	var mu sync.Mutex
	runs := map[string]int{}
	runRouter(t, watermill.NopLogger{}, once, map[string]string{"a": "t", "a:b": "t"},
		func(name string, _ *message.Message) error {
			mu.Lock()
			defer mu.Unlock()
			runs[name]++
			return nil
		}, map[string][]*message.Message{"t": {delivery(context.Background(), "1", "x")}})
	check.Equal(t, len(runs), 2, "handlers that ran")
}

// TestConcurrentDuplicateIsNoError in the router's log: it is nacked,
// redelivered, and acknowledged when the first delivery has ended.
func TestConcurrentDuplicateIsNoError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	once := check.Must(semelwatermill.Middleware(newInbox(t, inbox.Options[semel.Raw]{Mode: inbox.Leased}), r.Engine, semelwatermill.Options{
		Name: semelwatermill.FromMetadata("producer", "id"), MaxWait: time.Millisecond,
	}))(t)
	nacked := make(chan struct{})
	var tell sync.Once
	watched := func(next message.HandlerFunc) message.HandlerFunc {
		inner := once(next)
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := inner(msg)
			select {
			case <-msg.Nacked():
				tell.Do(func() { close(nacked) })
			default:
			}
			return out, err
		}
	}
	var text bytes.Buffer
	var runs int
	runRouter(t, watermill.NewSlogLogger(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelError}))), watched,
		map[string]string{"ship": "orders"}, func(string, *message.Message) error {
			runs++
			<-nacked // the redelivery while the first delivery is in progress
			return nil
		}, map[string][]*message.Message{"orders": {delivery(context.Background(), "1", "a"), delivery(context.Background(), "1", "a")}})
	if runs != 1 || text.Len() > 0 {
		t.Errorf("%d runs, and the router has logged %q; want one run and no error", runs, text.String())
	}
}
