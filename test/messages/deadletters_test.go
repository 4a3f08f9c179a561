//go:build unix

package messages_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// routedPublisher is a Watermill publisher for dead letters in RabbitMQ. It returns an
// error unless the broker has stored the message in a queue.
type routedPublisher struct{ url string }

func (p routedPublisher) Publish(queue string, all ...*message.Message) error {
	ch, done, err := channel(p.url) // it confirms what is published
	if err != nil {
		return err
	}
	defer done()
	for _, msg := range all {
		if err := publishRouted(msg.Context(), ch, queue, msg); err != nil {
			return err
		}
	}
	return nil
}

func (p routedPublisher) Close() error { return nil }

// publishRouted publishes with the flag mandatory: RabbitMQ returns a message that no
// queue takes, before it confirms it.
func publishRouted(ctx context.Context, ch *amqp.Channel, queue string, msg *message.Message) error {
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	headers := amqp.Table{}
	for k, v := range msg.Metadata {
		headers[k] = v
	}
	confirmation, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, MessageId: msg.UUID, Headers: headers, Body: msg.Payload,
	})
	if err != nil {
		return fmt.Errorf("publish to %s: %w", queue, err)
	}
	if ok, err := confirmation.WaitContext(ctx); err != nil || !ok {
		return fmt.Errorf("publish to %s: not confirmed: %w", queue, err)
	}
	select {
	case r := <-returned:
		return fmt.Errorf("publish to %s: no queue takes it: %s", queue, r.ReplyText)
	default:
		return nil
	}
}

// TestPoisonMessageIsAcknowledgedWithItsDeadLetter: the message is not acknowledged
// while the dead-letter queue is missing; when the queue is declared, it receives
// the message.
func TestPoisonMessageIsAcknowledgedWithItsDeadLetter(t *testing.T) {
	t.Parallel()
	broker := realtest.RabbitMQ(t)
	t.Attr("engine", "rabbitmq")
	orders, err := inbox.New("ship_order", inbox.Options[semel.Raw]{Group: "shipping"})
	check.Require(t, err)
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{orders.Operation()}})
	check.Require(t, err)
	queue := broker.Queue(t) + ".dead"
	once, err := semelwatermill.MiddlewareTx(orders, engine, semelwatermill.Options{
		Name: semelwatermill.FromUUID(producer), Poison: routedPublisher{broker.URL()}, PoisonTopic: queue, MaxWait: 1,
	})
	check.Require(t, err)
	handler := once(func(*message.Message) ([]*message.Message, error) {
		return nil, semel.Final(errors.New("no such article"))
	})
	for range 2 {
		if _, err := handler(message.NewMessageWithContext(t.Context(), "1", []byte("order 1"))); err == nil {
			t.Error("the message is acknowledged, and no queue has it")
		}
	}
	ch, done, err := channel(broker.URL())
	check.Require(t, err)
	defer done()
	check.Must(ch.QueueDeclare(queue, true, false, false, false, nil))(t)
	if _, err := handler(message.NewMessageWithContext(t.Context(), "1", []byte("order 1"))); err != nil {
		t.Errorf("the message is nacked with %v", err)
	}
	if n, err := queueLength(broker.URL(), queue); n != 1 || err != nil {
		t.Errorf("%d dead letters, %v, want 1", n, err)
	}
}
