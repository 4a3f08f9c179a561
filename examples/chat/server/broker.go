package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// maxQueueName leaves room for what the names of the other queues add.
const maxQueueName = 200

const (
	// dialBound is how long a broker may take to let the server in.
	dialBound = 10 * time.Second
	// heartbeat is how often the broker is heard of; twice that long it may be silent.
	heartbeat = 5 * time.Second
	// putBound is how long the broker may take to keep a message.
	putBound = 10 * time.Second
	// closeBound is how long it may take to say goodbye.
	closeBound = 2 * time.Second
)

// broker is one connection to RabbitMQ: a channel that messages come in by, and
// one that they are put elsewhere by.
type broker struct {
	conn     *amqp091.Connection
	in       *amqp091.Channel
	queue    string
	closeNow func()

	mu       sync.Mutex // one message is put elsewhere at a time
	out      *amqp091.Channel
	returned chan amqp091.Return
}

// connect connects and sees that the queue is there, and that of its dead letters.
func connect(ctx context.Context, url, queue string) (*broker, error) {
	conn, err := amqp091.DialConfig(url, amqp091.Config{
		Heartbeat: heartbeat, Properties: amqp091.Table{"connection_name": "chat import"},
		Dial: func(network, address string) (net.Conn, error) { return dial(ctx, network, address) },
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	b := &broker{conn: conn, queue: queue, returned: make(chan amqp091.Return, 1)}
	b.closeNow = sync.OnceFunc(func() { _ = conn.CloseDeadline(time.Now().Add(closeBound)) })
	if err := b.open(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialBound}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// Until the broker has let the server in; then the heartbeats see to it.
	return conn, conn.SetDeadline(time.Now().Add(dialBound))
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

// declare makes the queue unless there is one already, of whatever kind.
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

// consume lets messages come in, a few more than are handled at a time.
func (b *broker) consume(lanes int) (<-chan amqp091.Delivery, error) {
	if err := b.in.Qos(4*lanes, 0, false); err != nil {
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := b.in.Consume(b.queue, "", false, false, false, false, nil)
	return deliveries, wrap("consume "+b.queue, err)
}

// gone tells whether what is delivered could not be acknowledged any more.
func (b *broker) gone() bool { return b.in.IsClosed() }

// close gives back what is not acknowledged.
func (b *broker) close() { b.closeNow() }

// deadLetters is the queue of what cannot be imported.
func (b *broker) deadLetters() string { return b.queue + ".dead" }

// bury moves a delivery to the dead letters, with the reason in a header.
func (b *broker) bury(ctx context.Context, d amqp091.Delivery, why string) error {
	return b.move(ctx, d, b.deadLetters(), nil, amqp091.Table{"chat-reason": why})
}

// putOff lets a delivery come again, after that long at least. It waits in a queue
// whose messages all wait equally long, so that none is in another's way; there is
// one for 1 second, 2, 4, 8, and so on.
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

// maxWait is the longest that a message is put off, a little over an hour.
const maxWait = 4096 * time.Second

// move puts a delivery into another queue, and acknowledges it when the broker has
// it there. A crash in between leaves it in both; the inbox knows it then.
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
	// Somebody may have deleted it.
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
	case back := <-b.returned: // it comes before the confirm
		return fmt.Errorf("%w: %s", errNotKept, back.ReplyText)
	default:
		return nil
	}
}

// again is a delivery as it is to be published again: the same in all that names
// it and all it says.
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
