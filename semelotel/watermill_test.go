package semelotel_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelwatermill"
)

// once makes the middleware of an inbox for the mode of its name.
func (r *rig) once(t *testing.T, name string, mode inbox.Mode) message.HandlerMiddleware {
	t.Helper()
	in := check.Must(inbox.New(name, inbox.Options[semel.Raw]{Group: name, Mode: mode}))(t)
	o := semelwatermill.Options{Name: semelwatermill.FromUUID("shop"), MaxWait: time.Millisecond}
	if in.Transactional() {
		return check.Must(semelwatermill.MiddlewareTx(in, r.Engine, o))(t)
	}
	return check.Must(semelwatermill.Middleware(in, r, o))(t)
}

// TestTraceOverWatermill: a request, the handler of the event that it appends, the task that the
// handler enqueues and the handler of the message that it produces are one trace. The receivers
// are other programs. A repetition of the event adds no span.
func TestTraceOverWatermill(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]inbox.Mode{"leased": inbox.Leased, "pessimistic": inbox.Pessimistic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, receiver := newRig(t, semel.Options{}), newRig(t, semel.Options{Operations: []semel.Declared{mail}})
			pubsub := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
			t.Cleanup(func() { check.NoError(t, pubsub.Close()) })
			orders := check.Must(pubsub.Subscribe(t.Context(), "orders"))(t)
			relay := check.Must(outbox.NewRelay(r.Engine, publishTwice(semelwatermill.Publisher(pubsub)), outbox.Options{}))(t)

			ctx, request := r.tracers.Tracer("test").Start(t.Context(), "request")
			_, _, err := semel.DoTx(ctx, r.Engine, order.Call(shop, "1", "a"), func(ctx context.Context, tx *sql.Tx) (string, error) {
				return "a", outbox.AppendTx(ctx, r.Engine, tx, outbox.Event{Topic: "orders", Aggregate: "1", Type: "placed"})
			})
			check.Require(t, err)
			request.End()

			ship := receiver.once(t, "ship", mode)(func(msg *message.Message) ([]*message.Message, error) {
				return []*message.Message{message.NewMessage("shipped-1", nil)}, receiver.enqueue(msg.Context())
			})
			var shipped []*message.Message
			run(t, relay.Run, func() {
				for range 2 {
					msg := <-orders
					check.Equal(t, trace.SpanContextFromContext(msg.Context()).IsValid(), false, "the channel passes a context")
					shipped = check.Must(ship(msg))(t)
					msg.Ack()
				}
			})
			check.Equal(t, len(shipped), 1, "messages that a repetition produces again")
			bill := receiver.once(t, "bill", mode)(func(*message.Message) ([]*message.Message, error) { return nil, nil })
			check.Must(bill(shipped[0]))(t)
			mailSpan := receiver.mailed(t)

			orderSpan, shipSpan, billSpan := r.ended(t, "run order"), receiver.ended(t, "run ship"), receiver.ended(t, "run bill")
			wantLinks(t, request.SpanContext(), map[string]link{
				"the parent of the operation":         {orderSpan.Parent(), request.SpanContext()},
				"the parent of the event's handler":   {shipSpan.Parent(), orderSpan.SpanContext()},
				"the parent of the task":              {mailSpan.Parent(), shipSpan.SpanContext()},
				"the parent of the message's handler": {billSpan.Parent(), shipSpan.SpanContext()},
			})
		})
	}
}

// TestTraceOfAnInstrumentedSubscriber: the span of an outer middleware is the parent of the
// handler's run, and metadata of the handler's own are kept.
func TestTraceOfAnInstrumentedSubscriber(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{})
	_, producer := r.tracers.Tracer("test").Start(t.Context(), "producer")
	producer.End()
	ctx, received := r.tracers.Tracer("test").Start(trace.ContextWithRemoteSpanContext(t.Context(), producer.SpanContext()), "receive")
	msg := message.NewMessageWithContext(ctx, "1", nil)
	msg.Metadata = r.telemetry.Inject(trace.ContextWithSpan(t.Context(), producer))
	own := message.NewMessage("own", nil)
	own.Metadata.Set("traceparent", "chosen")
	out := check.Must(r.once(t, "ship", inbox.Pessimistic)(func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{own}, nil
	})(msg))(t)
	received.End()
	check.Equal(t, r.ended(t, "run ship").Parent().Equal(received.SpanContext()), true, "the parent is the outer span")
	check.Equal(t, out[0].Metadata.Get("traceparent"), "chosen", "the handler's own metadata")
	check.Equal(t, trace.SpanFromContext(msg.Context()), received, "the span of the message afterwards")
}

// publishTwice publishes each message twice.
func publishTwice(to outbox.Publisher) outbox.Publisher {
	return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		if err := to.Publish(ctx, m); err != nil {
			return err
		}
		return to.Publish(ctx, m)
	})
}
