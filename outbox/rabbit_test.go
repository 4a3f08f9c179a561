package outbox_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

// rabbit publishes to the queue that a topic names, and waits for the broker's confirm.
// It connects again after an error.
type rabbit struct {
	url string

	mu   sync.Mutex // guards the fields below
	conn *amqp091.Connection
	ch   *amqp091.Channel
}

func (r *rabbit) channel() (*amqp091.Channel, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ch != nil && !r.ch.IsClosed() {
		return r.ch, nil
	}
	if r.conn == nil || r.conn.IsClosed() {
		conn, err := amqp091.Dial(r.url)
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	ch, err := r.conn.Channel()
	if err != nil {
		return nil, err
	}
	r.ch = ch
	return ch, ch.Confirm(false)
}

// close closes the connection.
func (r *rabbit) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
}

// Publish publishes a persistent message.
func (r *rabbit) Publish(ctx context.Context, m outbox.Message) error {
	ch, err := r.channel()
	if err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", m.Topic, false, false, amqp091.Publishing{
		MessageId: m.ID, Type: m.Type, DeliveryMode: amqp091.Persistent, Body: m.Payload,
	})
	if err != nil {
		return err
	}
	switch confirmed, err := confirm.WaitContext(ctx); {
	case err != nil:
		return err
	case !confirmed:
		return errors.New("the broker did not take the message")
	}
	return nil
}

// TestRabbitMQ publishes with confirms. The connection is lost in between.
func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	server := realtest.RabbitMQ(t)
	queue := server.Queue(t)
	receiver, sender := &rabbit{url: server.URL()}, &rabbit{url: server.URL()}
	defer receiver.close()
	defer sender.close()
	ch := check.Must(receiver.channel())(t)
	check.Must(ch.QueueDeclare(queue, true, false, false, false, nil))(t)
	received := check.Must(ch.Consume(queue, "", true, false, false, false, nil))(t)

	d := onSQLite(t)
	e := newEngine(t, d.Store, semel.Options{})
	start(t, e, sender, quick)
	got := make(map[string][]string)
	ids := make(map[string]bool)
	var want []string
	for round := range 3 {
		events, list := numbered("order-"+string(rune('a'+round)), 5)
		for i := range events {
			events[i].Topic = queue
		}
		d.write(e, events...)
		want = append(want, list...)
		for len(ids) < len(want) {
			m := <-received
			if !ids[m.MessageId] {
				name := string(m.Body[:len("order-a")])
				got[name] = append(got[name], string(m.Body))
			}
			ids[m.MessageId] = true
		}
		sender.close()
	}
	emptied(t, e)
	var all []string
	for _, name := range []string{"order-a", "order-b", "order-c"} {
		all = append(all, got[name]...)
	}
	if !slices.Equal(all, want) {
		t.Errorf("%v were received, want %v", all, want)
	}
}
