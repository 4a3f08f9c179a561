package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// The names of what the shop declares at the broker. All of it is durable.
const (
	exchange    = "shop.payments"           // announcements of payments
	queue       = "warehouse.payments"      // those that the warehouse has not shipped yet
	deadLetters = "warehouse.payments.dead" // an exchange, and its one queue: messages that cannot be handled
	producer    = "shop"
)

const (
	dialTimeout    = 10 * time.Second
	heartbeat      = 5 * time.Second
	confirmTimeout = 10 * time.Second
)

// connect opens a connection with one channel and declares the exchanges and queues.
// Declaring what is there already changes nothing.
func connect(ctx context.Context, url string) (*amqp091.Connection, *amqp091.Channel, error) {
	conn, err := amqp091.DialConfig(url, amqp091.Config{Heartbeat: heartbeat, Dial: func(network, address string) (net.Conn, error) {
		dialer := net.Dialer{Timeout: dialTimeout}
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// The deadline is for the handshake. After it, heartbeats detect a dead peer.
		return c, c.SetDeadline(time.Now().Add(dialTimeout))
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the broker: %w", err)
	}
	ch, err := conn.Channel()
	if err == nil {
		err = declare(ch)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("set the broker up: %w", err), conn.Close())
	}
	return conn, ch, nil
}

// declare also declares the dead-letter queue: RabbitMQ discards a rejected message
// whose dead-letter exchange leads nowhere.
func declare(ch *amqp091.Channel) error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	note(ch.ExchangeDeclare(exchange, amqp091.ExchangeFanout, true, false, false, false, nil))
	note(ch.ExchangeDeclare(deadLetters, amqp091.ExchangeFanout, true, false, false, false, nil))
	_, err := ch.QueueDeclare(deadLetters, true, false, false, false, nil)
	note(err)
	note(ch.QueueBind(deadLetters, "", deadLetters, false, nil))
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp091.Table{"x-dead-letter-exchange": deadLetters})
	note(err)
	note(ch.QueueBind(queue, "", exchange, false, nil))
	return errors.Join(errs...)
}

// publisher publishes over one connection, which it opens when it is first needed and
// again after an error.
type publisher struct {
	url string

	mu       sync.Mutex // one message is published at a time
	conn     *amqp091.Connection
	ch       *amqp091.Channel
	returned chan amqp091.Return
}

// publish returns nil only after the broker has confirmed that it has stored the
// message in a queue.
func (p *publisher) publish(ctx context.Context, id string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.send(ctx, amqp091.Publishing{
		MessageId: id, ContentType: "application/json", DeliveryMode: amqp091.Persistent, Body: text,
	}); err != nil {
		p.close()
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

func (p *publisher) send(ctx context.Context, m amqp091.Publishing) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	const mandatory = true // a message that no queue takes comes back
	confirmation, err := p.ch.PublishWithDeferredConfirmWithContext(ctx, exchange, "", mandatory, false, m)
	if err != nil {
		return err
	}
	switch stored, err := confirmation.WaitContext(ctx); {
	case err != nil:
		return err
	case !stored:
		return errors.New("the broker has not stored the message")
	}
	select {
	case back := <-p.returned: // comes before the confirmation
		return fmt.Errorf("the message came back: %s", back.ReplyText)
	default:
		return nil
	}
}

func (p *publisher) open(ctx context.Context) (err error) {
	if p.conn != nil && !p.conn.IsClosed() && !p.ch.IsClosed() {
		return nil
	}
	p.close()
	if p.conn, p.ch, err = connect(ctx, p.url); err != nil {
		return err
	}
	p.returned = p.ch.NotifyReturn(make(chan amqp091.Return, 1))
	return p.ch.Confirm(false)
}

// close drops the connection; the next message opens another one.
func (p *publisher) close() {
	if p.conn != nil {
		_ = p.conn.CloseDeadline(time.Now().Add(time.Second))
		p.conn, p.ch = nil, nil
	}
}
