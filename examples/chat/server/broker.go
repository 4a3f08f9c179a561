package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/examples/chat/bus"
)

// maxQueueName leaves room for the suffixes of the dead-letter and delay queues.
const maxQueueName = 200

const (
	// putBound limits the wait for a publisher confirm.
	putBound = 10 * time.Second
	// closeBound limits closing the connection.
	closeBound = 2 * time.Second
)

// broker is one connection to RabbitMQ, with one channel to consume from and one
// to publish on.
type broker struct {
	conn     *amqp091.Connection
	in       *amqp091.Channel
	queue    string
	closeNow func()

	mu       sync.Mutex // one message is published at a time
	out      *amqp091.Channel
	returned chan amqp091.Return
}

// connect connects and declares the queue and its dead-letter queue.
func connect(ctx context.Context, url, queue string) (*broker, error) {
	conn, err := bus.Dial(ctx, url, "chat import")
	if err != nil {
		return nil, err
	}
	b := &broker{conn: conn, queue: queue, returned: make(chan amqp091.Return, 1)}
	b.closeNow = sync.OnceFunc(func() { _ = conn.CloseDeadline(time.Now().Add(closeBound)) })
	if err := b.open(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *broker) open() (err error) {
	if b.in, err = b.conn.Channel(); err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := b.declare(); err != nil {
		return err
	}
	if b.out, err = b.conn.Channel(); err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	b.out.NotifyReturn(b.returned)
	if err := b.out.Confirm(false); err != nil {
		return fmt.Errorf("ask for confirms: %w", err)
	}
	_, err = b.out.QueueDeclare(b.deadLetters(), true, false, false, false, nil)
	return wrap("declare "+b.deadLetters(), err)
}

// declare creates the queue if there is none. It accepts an existing queue of any
// type.
func (b *broker) declare() error {
	look, err := b.conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if _, err = look.QueueDeclarePassive(b.queue, true, false, false, false, nil); err == nil {
		return look.Close()
	}
	_, err = b.in.QueueDeclare(b.queue, true, false, false, false, nil)
	return wrap("declare "+b.queue, err)
}

// consume starts consuming. The broker sends a few more messages than the server
// handles at a time.
func (b *broker) consume(lanes int) (<-chan amqp091.Delivery, error) {
	if err := b.in.Qos(4*lanes, 0, false); err != nil {
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := b.in.Consume(b.queue, "", false, false, false, false, nil)
	return deliveries, wrap("consume "+b.queue, err)
}

// gone reports whether the consuming channel is closed, so that deliveries can
// no longer be acknowledged.
func (b *broker) gone() bool { return b.in.IsClosed() }

// close closes the connection. The broker redelivers what was not acknowledged.
func (b *broker) close() { b.closeNow() }

// deadLetters is the name of the dead-letter queue.
func (b *broker) deadLetters() string { return b.queue + ".dead" }

// bury moves a delivery to the dead-letter queue, with the reason in a header.
func (b *broker) bury(ctx context.Context, d amqp091.Delivery, why string) error {
	return b.move(ctx, d, b.deadLetters(), nil, amqp091.Table{"chat-reason": why})
}

// putOff redelivers a message after the given delay or a little later. RabbitMQ
// expires messages only at the head of a queue, so all messages of one delay
// queue have the same delay. There is a queue for 1 second, 2, 4, 8, and so on.
func (b *broker) putOff(ctx context.Context, d amqp091.Delivery, after time.Duration) error {
	wait := time.Second
	for wait < after && wait < maxWait {
		wait *= 2
	}
	return b.move(ctx, d, fmt.Sprintf("%s.wait.%s", b.queue, wait), amqp091.Table{
		amqp091.QueueMessageTTLArg: wait.Milliseconds(),
		"x-dead-letter-exchange":   "", "x-dead-letter-routing-key": b.queue,
	}, nil)
}

// maxWait is the longest delay, a little over an hour.
const maxWait = 4096 * time.Second

// move publishes a delivery to another queue, and acknowledges it after the
// broker's confirm. A crash between the two leaves the message in both queues;
// the inbox then recognizes the duplicate.
func (b *broker) move(ctx context.Context, d amqp091.Delivery, queue string, arguments, headers amqp091.Table) error {
	if err := b.put(ctx, d, queue, arguments, headers); err != nil {
		return fmt.Errorf("put a message into %s: %w", queue, err)
	}
	return d.Ack(false)
}

var errNotKept = errors.New("the broker has not kept it")

func (b *broker) put(ctx context.Context, d amqp091.Delivery, queue string, arguments, headers amqp091.Table) error {
	ctx, cancel := context.WithTimeout(ctx, putBound)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	// An operator may have deleted the queue.
	if _, err := b.out.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		return err
	}
	kept, err := b.out.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, again(d, headers))
	if err != nil {
		return err
	}
	if ok, err := kept.WaitContext(ctx); err != nil || !ok {
		return errors.Join(errNotKept, err)
	}
	select {
	case back := <-b.returned: // a returned message comes before its confirm
		return fmt.Errorf("%w: %s", errNotKept, back.ReplyText)
	default:
		return nil
	}
}

// again returns the delivery as a new publishing with the same identity, headers
// and body.
func again(d amqp091.Delivery, headers amqp091.Table) amqp091.Publishing {
	all := amqp091.Table{}
	for _, from := range []amqp091.Table{d.Headers, headers} {
		maps.Copy(all, from)
	}
	return amqp091.Publishing{
		Headers: all, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp091.Persistent,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId,
		Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}

func wrap(doing string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
