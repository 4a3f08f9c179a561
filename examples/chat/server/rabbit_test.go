package server_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// rabbit is a queue of a real broker with the test's connection.
type rabbit struct {
	*realtest.Broker

	queue string
	ch    *amqp091.Channel
}

// newRabbit creates a queue. At the end of the test it deletes the queue and those
// that the server has added.
func newRabbit(t *testing.T) *rabbit {
	t.Helper()
	b := realtest.RabbitMQ(t)
	r := &rabbit{Broker: b, queue: b.Queue(t)}
	r.connect(t)
	t.Cleanup(func() {
		for _, more := range []string{".dead", ".wait.1s", ".wait.2s"} {
			_, _ = r.ch.QueueDelete(r.queue+more, false, false, false)
		}
	})
	return r
}

// connect connects the test and declares the queue.
func (r *rabbit) connect(t *testing.T) {
	t.Helper()
	conn := check.Must(amqp091.Dial(r.URL()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	r.ch = check.Must(conn.Channel())(t)
	check.Require(t, r.ch.Confirm(false))
	check.Must(r.ch.QueueDeclare(r.queue, true, false, false, false, nil))(t)
}

// args adds the flags that make a server import from the queue.
func (r *rabbit) args(of []string) []string {
	return append(of, "-amqp", r.URL(), "-amqp-queue", r.queue)
}

// outside is a message of another program.
func outside(id, group string, sender int64, text string) amqp091.Publishing {
	body, _ := json.Marshal(map[string]any{"group": group, "sender": sender, "body": text})
	return amqp091.Publishing{AppId: "billing", MessageId: id, DeliveryMode: amqp091.Persistent, Body: body}
}

// publish publishes messages and waits for the broker's confirms.
func (r *rabbit) publish(t *testing.T, messages ...amqp091.Publishing) {
	t.Helper()
	for _, m := range messages {
		kept := check.Must(r.ch.PublishWithDeferredConfirmWithContext(t.Context(), "", r.queue, true, false, m))(t)
		if ok, err := kept.WaitContext(t.Context()); !ok {
			t.Fatalf("the broker did not take %s: %v", m.MessageId, err)
		}
	}
}

// left counts the messages in a queue.
func (r *rabbit) left(t *testing.T, more string) int {
	t.Helper()
	q := check.Must(r.ch.QueueDeclarePassive(r.queue+more, true, false, false, false, nil))(t)
	return q.Messages
}

// importReport is the server's report of its import.
type importReport struct {
	Connected                            bool
	Delivered, Written, Duplicates, Dead int64
	PutOff                               int64 `json:"put_off"`
}

func (c *client) importing(t *testing.T, u user) importReport {
	t.Helper()
	return read[queueReport](t, c, u, "/v1/queue").Import
}

// untilImport waits until the server's report fulfils is.
func (c *client) untilImport(t *testing.T, u user, what string, is func(importReport) bool) importReport {
	t.Helper()
	var got importReport
	realtest.Poll(t, "an import of which "+what, func() bool {
		got = c.importing(t, u)
		return is(got)
	})
	return got
}

// wantTexts checks that the sender's messages in a group are these, each once, in
// any order.
func (c *client) wantTexts(t *testing.T, sender user, group string, want []string) {
	t.Helper()
	got := c.textsOf(t, sender, group)
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	check.NoDiff(t, cmp.Diff(want, got), "the messages of %s", sender.Name)
}
