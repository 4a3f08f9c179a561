package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	// dialTimeout limits connecting and the handshake.
	dialTimeout = 10 * time.Second
	// heartbeat is the AMQP heartbeat; a connection is closed after two missed ones.
	heartbeat = 5 * time.Second
	// closeTimeout limits closing a connection.
	closeTimeout = 2 * time.Second
)

// RabbitMQ is a fanout exchange. Each subscriber has an exclusive queue, which ends
// with its connection.
type RabbitMQ struct {
	url, exchange string

	lock connectionLock // guards out, and is held while an event is published
	out  *amqp091.Channel
}

// NewRabbitMQ returns a bus on a broker. It connects when it is used. Servers with
// the same exchange share their events.
func NewRabbitMQ(url, exchange string) *RabbitMQ {
	return &RabbitMQ{url: url, exchange: exchange, lock: newConnectionLock()}
}

// Dial connects to RabbitMQ, under a name that operators see. Connecting and the handshake end with
// ctx or after ten seconds. Afterwards heartbeats detect a lost connection.
func Dial(ctx context.Context, url, name string) (*amqp091.Connection, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := amqp091.DialConfig(url, amqp091.Config{
		Heartbeat: heartbeat, Properties: amqp091.Table{"connection_name": name},
		Dial: func(network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return c, c.SetDeadline(time.Now().Add(dialTimeout))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	return conn, nil
}

// open connects and declares the exchange. end closes the connection.
func (r *RabbitMQ) open(ctx context.Context) (*amqp091.Channel, func(), error) {
	conn, err := Dial(ctx, r.url, "chat bus")
	if err != nil {
		return nil, nil, err
	}
	end := func() { _ = conn.CloseDeadline(time.Now().Add(closeTimeout)) }
	ch, err := conn.Channel()
	if err == nil {
		err = ch.ExchangeDeclare(r.exchange, amqp091.ExchangeFanout, true, false, false, false, nil)
	}
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("declare exchange %s: %w", r.exchange, err)
	}
	return ch, end, nil
}

// errNotConfirmed says that the broker has not confirmed the event.
var errNotConfirmed = errors.New("RabbitMQ has not confirmed the event")

// Publish waits for the broker's confirm. After an error the next call connects
// again.
func (r *RabbitMQ) Publish(ctx context.Context, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	confirm, err := r.put(ctx, amqp091.Publishing{ContentType: "application/json", MessageId: e.ID, Body: body})
	if err != nil {
		return err
	}
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		return errors.Join(errNotConfirmed, err)
	}
	return nil
}

func (r *RabbitMQ) put(ctx context.Context, m amqp091.Publishing) (*amqp091.DeferredConfirmation, error) {
	if err := r.lock.take(ctx); err != nil {
		return nil, err
	}
	defer r.lock.release()
	if r.out == nil || r.out.IsClosed() {
		if err := r.lock.connect(func() error { return r.openOut(ctx) }); err != nil {
			return nil, err
		}
	}
	confirm, err := r.out.PublishWithDeferredConfirmWithContext(ctx, r.exchange, "", false, false, m)
	if err != nil {
		_ = r.out.Close()
		return nil, fmt.Errorf("publish to %s: %w", r.exchange, err)
	}
	return confirm, nil
}

// openOut opens the channel of Publish.
func (r *RabbitMQ) openOut(ctx context.Context) error {
	ch, end, err := r.open(ctx)
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		end()
		return fmt.Errorf("ask for confirms: %w", err)
	}
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	go func() { // a closed channel ends its connection
		for range closed { // until it is closed
		}
		end()
	}()
	r.out = ch
	return nil
}

// Close closes the connection of Publish. Subscribe ends with its context.
func (r *RabbitMQ) Close() {
	_ = r.lock.take(context.Background())
	defer r.lock.release()
	if r.out != nil {
		_ = r.out.Close()
	}
}

// Subscribe implements [Bus].
func (r *RabbitMQ) Subscribe(ctx context.Context, f func(Event)) error {
	return reconnect(ctx, func() (connected bool, err error) {
		ch, end, err := r.open(ctx)
		if err != nil {
			return false, err
		}
		defer end()
		queue, err := ch.QueueDeclare("", false, true, true, false, nil)
		if err == nil {
			err = ch.QueueBind(queue.Name, "", r.exchange, false, nil)
		}
		if err != nil {
			return false, fmt.Errorf("declare queue: %w", err)
		}
		deliveries, err := ch.ConsumeWithContext(ctx, queue.Name, "", true, true, false, false, nil)
		if err != nil {
			return false, fmt.Errorf("consume: %w", err)
		}
		f(Event{Type: Missed})
		for d := range deliveries {
			dispatch(d.Body, f)
		}
		return true, errors.New("the connection to RabbitMQ was lost")
	})
}

// dispatch decodes an event. An event that cannot be decoded is from another
// version: clients then read the changes from the database.
func dispatch(body []byte, f func(Event)) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		e = Event{Type: Missed}
	}
	f(e)
}
