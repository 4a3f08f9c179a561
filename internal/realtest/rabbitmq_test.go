package realtest_test

import (
	"net"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestQueueEndsWithItsTest: so does an exchange of that name, and no other.
func TestQueueEndsWithItsTest(t *testing.T) {
	t.Parallel()
	s := realtest.RabbitMQ(t)
	user := &fakeTest{TB: t}
	gone, stays := s.Queue(user), s.Queue(t)
	s.Queue(user) // a name that nothing has
	ch := channel(t, s.URL())
	for _, name := range []string{gone, stays} {
		check.Require(t, ch.ExchangeDeclare(name, amqp.ExchangeFanout, true, false, false, false, nil))
		declare(t, ch, name)
		publish(t, ch, name, "kept")
	}
	user.end()
	if got := take(t, ch, stays); got != "kept" {
		t.Errorf("the other test's queue holds %q, want what was put there", got)
	}
	_, err := channel(t, s.URL()).QueueDeclarePassive(gone, true, false, false, false, nil)
	check.Fails(t, err, "the queue is still there")
	err = channel(t, s.URL()).ExchangeDeclarePassive(gone, amqp.ExchangeFanout, true, false, false, false, nil)
	check.Fails(t, err, "the exchange is still there")
}

// TestKilledBrokerKeepsDurableMessages and starts again at its address, with its
// settings. A stopped one has ended.
func TestKilledBrokerKeepsDurableMessages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	s := realtest.OwnRabbitMQ(t, "channel_max = 7")
	url, queue := s.URL(), s.Queue(t)
	ch := channel(t, url)
	declare(t, ch, queue)
	mustBeSilentWhilePaused(t, s, func() error { return ch.Qos(1, 0, false) })
	publish(t, ch, queue, "kept")
	s.Kill()
	mustNotAnswer(t, url)
	s.Start(t)
	conn := open(t, url)
	if got := conn.Config.ChannelMax; s.URL() != url || got != 7 {
		t.Errorf("the broker is at %s and allows %d channels, want %s and 7", s.URL(), got, url)
	}
	if got := take(t, channel(t, url), queue); got != "kept" {
		t.Errorf("the queue holds %q, want what was put there before", got)
	}
	s.Stop()
	mustNotAnswer(t, url)
}

func mustNotAnswer(t *testing.T, url string) {
	t.Helper()
	if conn, err := amqp.Dial(url); err == nil {
		conn.Close()
		t.Error("the broker still answers")
	}
}

// TestBrokerReportsATakenPort: another process has the port, and may not
// answer; the broker then tries another port.
func TestBrokerReportsATakenPort(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	check.Require(t, err)
	defer taken.Close()
	inUse, err := realtest.StartRabbitMQAt(t.Context(), taken.Addr().String())
	if !inUse || !strings.Contains(err.Error(), "could_not_start_listener") {
		t.Errorf("got %v, want that the port is taken, and the broker's own words", err)
	}
}

func open(t *testing.T, url string) *amqp.Connection {
	t.Helper()
	conn := check.Must(amqp.Dial(url))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// channel opens a channel, on a connection of its own, that confirms what is
// published.
func channel(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	ch := check.Must(open(t, url).Channel())(t)
	check.Require(t, ch.Confirm(false))
	return ch
}

func declare(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	check.Must(ch.QueueDeclare(queue, true, false, false, false, nil))(t)
}

// publish puts a lasting message into the queue, and waits until it is there.
func publish(t *testing.T, ch *amqp.Channel, queue, text string) {
	t.Helper()
	confirmed, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(text)})
	if err != nil {
		t.Error(err)
		return
	}
	if ok, err := confirmed.WaitContext(t.Context()); !ok {
		t.Errorf("%s was not confirmed: %v", text, err)
	}
}

// take takes the message that is next in the queue.
func take(t *testing.T, ch *amqp.Channel, queue string) string {
	t.Helper()
	got, ok, err := ch.Get(queue, true)
	if err != nil || !ok {
		t.Errorf("nothing is in the queue: %v", err)
	}
	return string(got.Body)
}
