//go:build unix

package messages_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// producer is the producer of all messages.
const producer = "shop"

// consume gives every delivery of the queue to handle, each on a goroutine of its
// own, at most prefetch at a time, until ctx ends. When the connection is lost it
// makes another.
func consume(ctx context.Context, url, queue string, prefetch int, handle func(context.Context, amqp.Delivery)) {
	_ = realtest.Retry(ctx, func() bool { return session(ctx, url, queue, prefetch, handle) == nil })
}

// session is consume for one connection. It returns when all handlers that it has
// started have ended.
func session(ctx context.Context, url, queue string, prefetch int, handle func(context.Context, amqp.Delivery)) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return fmt.Errorf("limit the deliveries: %w", err)
	}
	deliveries, err := ch.ConsumeWithContext(ctx, queue, "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for d := range deliveries {
		all.Go(func() { handle(ctx, d) })
	}
	return errors.New("the connection was lost")
}

// subscriber is a Watermill subscriber for queues of RabbitMQ.
type subscriber struct {
	url      string
	prefetch int
}

func (s subscriber) Subscribe(ctx context.Context, queue string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		consume(ctx, s.url, queue, s.prefetch, func(ctx context.Context, d amqp.Delivery) { deliver(ctx, out, d) })
	}()
	return out, nil
}

func (s subscriber) Close() error { return nil }

// deliver passes one delivery to handle and reports the result to the broker.
func deliver(ctx context.Context, out chan<- *message.Message, d amqp.Delivery) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	msg := message.NewMessageWithContext(ctx, d.MessageId, d.Body)
	msg.Metadata.Set("producer", d.AppId)
	msg.Metadata.Set("id", d.MessageId)
	msg.Metadata.Set("redelivered", fmt.Sprint(d.Redelivered))
	select {
	case out <- msg:
	case <-ctx.Done():
		return
	}
	// An error belongs to the connection: the broker then delivers the message
	// again.
	select {
	case <-msg.Acked():
		_ = d.Ack(false)
	case <-msg.Nacked():
		_ = d.Nack(false, true)
	}
}

// pause waits d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// channel opens a channel that confirms what is published.
func channel(url string) (*amqp.Channel, func(), error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return ch, func() { _ = conn.Close() }, nil
}

// declare makes a durable queue and its dead-letter queue "<queue>.dead".
func declare(t *testing.T, url, queue string) {
	t.Helper()
	ch, done, err := channel(url)
	check.Require(t, err)
	defer done()
	_, dead := ch.QueueDeclare(queue+".dead", true, false, false, false, nil)
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue + ".dead",
	})
	check.Require(t, errors.Join(dead, err))
}

// publish sends messages and returns when the broker has confirmed them all. After
// an error, some of them may have arrived.
func publish(ctx context.Context, url, queue string, ids ...string) error {
	ch, done, err := channel(url)
	if err != nil {
		return err
	}
	defer done()
	var confirmed []*amqp.DeferredConfirmation
	for _, id := range ids {
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, AppId: producer, MessageId: id, Body: []byte("order " + id),
		})
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		confirmed = append(confirmed, c)
	}
	for _, c := range confirmed {
		if ok, err := c.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("publish: not confirmed: %w", err)
		}
	}
	return nil
}

// queueLength is the number of messages in the queue.
func queueLength(url, queue string) (int, error) {
	ch, done, err := channel(url)
	if err != nil {
		return 0, err
	}
	defer done()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0, fmt.Errorf("ask for %s: %w", queue, err)
	}
	return q.Messages, nil
}
