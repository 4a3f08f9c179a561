package bus_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// server is a bus with the connections of one server of the chat.
type server interface {
	bus.Bus
	Close()
}

// cable forwards connections to a server, and can cut them all.
type cable struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn
}

func newCable(t *testing.T, target string) *cable {
	t.Helper()
	l := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	c := &cable{listener: l, target: target}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.forward(t.Context(), client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		running.Wait()
	})
	return c
}

func (c *cable) forward(ctx context.Context, client net.Conn) {
	defer client.Close()
	upstream, err := new(net.Dialer).DialContext(ctx, "tcp", c.target)
	if err != nil {
		return
	}
	defer upstream.Close()
	c.mu.Lock()
	c.conns = append(c.conns, client, upstream)
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(upstream, client)
		_ = upstream.Close()
		close(ended)
	}()
	_, _ = io.Copy(client, upstream)
	_ = client.Close()
	<-ended
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

func (c *cable) url(t *testing.T, of string) string {
	t.Helper()
	u := check.Must(url.Parse(of))(t)
	u.Host = c.listener.Addr().String()
	return u.String()
}

// eachBus runs a test on RabbitMQ and PostgreSQL. connect returns another server's
// bus, and the cable of its connections.
func eachBus(t *testing.T, test func(t *testing.T, connect func() (server, *cable))) {
	t.Helper()
	t.Run("rabbitmq", func(t *testing.T) {
		t.Attr("engine", "rabbitmq")
		broker := realtest.RabbitMQ(t)
		exchange := broker.Queue(t)
		test(t, func() (server, *cable) {
			c := newCable(t, broker.Addr())
			return closed(t, bus.NewRabbitMQ(c.url(t, broker.URL()), exchange)), c
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Attr("engine", "postgres")
		s := realtest.Postgres(t)
		database := s.Database(t)
		test(t, func() (server, *cable) {
			c := newCable(t, s.Addr())
			return closed(t, check.Must(bus.NewPostgres(c.url(t, database), "chat"))(t)), c
		})
	})
}

func closed(t *testing.T, s server) server {
	t.Helper()
	t.Cleanup(s.Close)
	return s
}

// subscribe returns the events of a subscription that has begun.
func subscribe(t *testing.T, b bus.Bus) <-chan bus.Event {
	t.Helper()
	events := make(chan bus.Event, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Subscribe(ctx, func(e bus.Event) { events <- e }) }()
	t.Cleanup(func() {
		cancel()
		check.ErrorIs(t, <-ended, context.Canceled, "Subscribe")
	})
	check.Equal(t, (<-events).Type, bus.Missed, "the first event")
	return events
}

func message(n int64) bus.Event {
	return bus.Event{
		ID: fmt.Sprint("e", n), Topic: bus.GroupTopic("g"), Type: "message", Change: n,
		Payload: fmt.Appendf(nil, `{"push":"message","change":%d}`, n),
		Users:   []int64{1, 2}, Removed: []int64{2},
	}
}

func publish(t *testing.T, b bus.Publisher, e bus.Event) {
	t.Helper()
	check.Require(t, b.Publish(t.Context(), e))
}

// TestAllServersReceiveAllEvents, in order, the publisher too.
func TestAllServersReceiveAllEvents(t *testing.T) {
	local := &bus.Local{}
	checkAll(t, local, subscribe(t, local), subscribe(t, local))
	eachBus(t, func(t *testing.T, connect func() (server, *cable)) {
		one, _ := connect()
		two, _ := connect()
		checkAll(t, one, subscribe(t, one), subscribe(t, two))
	})
}

func checkAll(t *testing.T, b bus.Publisher, subscribers ...<-chan bus.Event) {
	t.Helper()
	for n := range int64(100) {
		publish(t, b, message(n+1))
	}
	for _, events := range subscribers {
		for n := range int64(100) {
			if diff := cmp.Diff(message(n+1), <-events); diff != "" {
				t.Fatalf("event %d (-want +got):\n%s", n+1, diff)
			}
		}
	}
}

// TestReconnect: after a lost connection the subscriber is told that it may have
// missed events, and receives new ones; the publisher connects again.
func TestReconnect(t *testing.T) {
	eachBus(t, func(t *testing.T, connect func() (server, *cable)) {
		here, broken := connect()
		there, _ := connect()
		events := subscribe(t, here)
		publish(t, here, message(1))
		check.Equal(t, (<-events).Change, 1, "received")
		broken.cut()
		publish(t, there, message(2)) // may be missed, or arrive before or after the connection is made again
		var e bus.Event
		for e = <-events; e.Type != bus.Missed; e = <-events {
			if e.Change != 2 {
				t.Errorf("received %+v after the cut", e)
			}
		}
		publish(t, there, message(3))
		if e = <-events; e.Change == 2 {
			e = <-events
		}
		if e.Change != 3 {
			t.Errorf("received %+v, want change 3", e)
		}
		check.Require(t, realtest.Retry(t.Context(), func() bool { return here.Publish(t.Context(), message(4)) == nil }))
		for e = <-events; e.Change != 4; e = <-events {
			t.Errorf("received %+v, want change 4", e)
		}
	})
}

// TestLargeEvents: what does not fit into a notification is replaced or split.
func TestLargeEvents(t *testing.T) {
	eachBus(t, func(t *testing.T, connect func() (server, *cable)) {
		b, _ := connect()
		events := subscribe(t, b)
		large := message(1)
		large.Payload = []byte(`{"text":"` + strings.Repeat("x", 20_000) + `"}`)
		publish(t, b, large)
		got := <-events
		want := large
		if t.Name() == "TestLargeEvents/postgres" {
			want.Payload = []byte(`{"push":"gap","group":"g","change":1}`)
		}
		check.NoDiff(t, cmp.Diff(want, got), "a large payload")

		// An event for many users may come in parts.
		many := message(2)
		many.Removed = nil
		for user := range int64(3000) {
			many.Users = append(many.Users, 1_000_000_000+user)
		}
		publish(t, b, many)
		var users []int64
		for len(users) < len(many.Users) {
			e := <-events
			if string(e.Payload) != string(many.Payload) || e.Change != 2 {
				t.Fatalf("received %+v", e)
			}
			users = append(users, e.Users...)
		}
		check.NoDiff(t, cmp.Diff(many.Users, users), "the users that received the event")
	})
}

func TestGroupEvent(t *testing.T) {
	payload := []byte(`{"push":"group","group":"g","change":7,"added":[1],"removed":[2,3]}`)
	got, err := bus.GroupEvent("id", "group", "g", payload)
	want := bus.Event{ID: "id", Topic: "group:g", Type: "group", Change: 7, Payload: payload, Users: []int64{1, 2, 3}, Removed: []int64{2, 3}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	check.Fails(t, check.Err(bus.GroupEvent("id", "group", "g", []byte("[]"))), "a payload that is no object")
}
