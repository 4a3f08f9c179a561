package semelwatermill_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelwatermill"
)

// TestRedeliveryAfterAnError compares with Watermill's own Deduplicator. That
// one drops the redelivery of a failed message, because it marked the message
// before the handler ran. This middleware handles it.
func TestRedeliveryAfterAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := newInbox(t, inbox.Options[semel.Raw]{})
	for name, test := range map[string]struct {
		around func(message.HandlerFunc) message.HandlerFunc
		want   int
	}{
		"Deduplicator": {new(middleware.Deduplicator).Middleware, 0},
		"Inbox": {func(h message.HandlerFunc) message.HandlerFunc {
			return r.wrap(t, in, semelwatermill.Options{}, h)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, handled := 0, 0
			deliver(t, test.around(func(*message.Message) ([]*message.Message, error) {
				if runs++; runs == 1 {
					return nil, errHandler
				}
				handled++
				return nil, nil
			}), delivery(context.Background(), "1", "a"))
			check.Equal(t, handled, test.want, "after an error and a redelivery it was handled")
		})
	}
}

// deliver sends msg to h through a real router, until it is acknowledged.
func deliver(t *testing.T, h message.HandlerFunc, msg *message.Message) {
	t.Helper()
	runRouter(t, watermill.NopLogger{}, func(message.HandlerFunc) message.HandlerFunc { return h },
		map[string]string{"ship": "orders"}, nil, map[string][]*message.Message{"orders": {msg}})
}

// TestPublishingFails after the handler has committed: the message is
// redelivered, and its produced messages are published again.
func TestPublishingFails(t *testing.T) {
	t.Parallel()
	r, out := newRig(t), new(letters)
	runs := 0
	h := r.wrap(t, newInbox(t, inbox.Options[semel.Raw]{}), semelwatermill.Options{}, func(msg *message.Message) ([]*message.Message, error) {
		runs++
		return []*message.Message{message.NewMessage("shipped-1", msg.Payload)}, r.effect(msg)
	})
	tries := 0
	deliver(t, func(msg *message.Message) ([]*message.Message, error) {
		all, err := h(msg)
		if tries++; tries == 1 {
			return nil, errors.New("the process died before it could publish")
		}
		return nil, errors.Join(err, out.Publish("shipped", all...))
	}, delivery(context.Background(), "1", "a"))
	got := out.in("shipped")
	if len(got) != 1 || got[0].UUID != "shipped-1" || string(got[0].Payload) != "a" {
		t.Errorf("%v were published, want the message of the committed run", got)
	}
	if runs != 1 || tries != 2 || r.effects("a") != 1 {
		t.Errorf("%d runs in %d deliveries, %d effects, want 1 in 2, and 1", runs, tries, r.effects("a"))
	}
}

// TestPoisonQueueOutside: a poison queue with a filter takes rejected messages,
// and no message that is to be redelivered.
func TestPoisonQueueOutside(t *testing.T) {
	t.Parallel()
	r, dead := newRig(t), new(letters)
	outside := check.Must(middleware.PoisonQueueWithFilter(dead, "dead", func(err error) bool {
		_, rejected := errtype.Find[*semelwatermill.RejectedError](err)
		return rejected
	}))(t)
	in := newInbox(t, inbox.Options[semel.Raw]{Retry: semel.Retry{MaxErrors: 2}})
	runs := 0
	deliver(t, outside(r.wrap(t, in, semelwatermill.Options{}, func(*message.Message) ([]*message.Message, error) {
		runs++
		return nil, errHandler
	})), delivery(context.Background(), "1", "a"))
	if n := len(dead.in("dead")); n != 1 || runs != 2 {
		t.Errorf("%d dead letters after %d runs, want 1 after 2", n, runs)
	}
}
