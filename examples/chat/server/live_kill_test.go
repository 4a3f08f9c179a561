//go:build unix

package server_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/load"
	"github.com/semelgo/semel/internal/realtest"
)

// TestLiveDeliveryWhileServersAreKilled lets clients that reconnect at random send messages
// through two servers, which are killed and stopped beyond their leases at the points of a
// message and of its publication. Every message is stored once, every client has a complete
// view without duplicates (package load verifies both), and every event is published at least
// once, in the order of its group.
func TestLiveDeliveryWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	options := load.Options{Clients: 200, Messages: 5000, Rate: 100, Drop: 10 * time.Second}
	acts := []string{"kill", "stop"}
	points := []string{beforePublish, afterPublish, beforeCommit, afterCommit}
	if testing.Short() {
		options.Clients, options.Messages, options.Rate, options.Drop = 16, 200, 100, time.Second
		points = []string{afterPublish, beforeCommit}
	}
	k := newLiveKill(t, options)
	ended := k.load(t)
	i := 0
	for _, act := range acts {
		for _, point := range points {
			k.round(t, k.members[i%2], act, point)
			i++
		}
	}
	close(k.calm)
	<-ended
	repeats := k.published(t)
	t.Logf("%d kills and stops, %d events were published again", i, repeats)
	if repeats == 0 {
		t.Error("no event was published again, though a relay was killed between the publication and its removal")
	}
}

// liveKill is two servers on one PostgreSQL and one RabbitMQ, under load.
type liveKill struct {
	members [2]*member
	options load.Options
	domain  chatdb.Querier
	events  *published
	failed  chan struct{} // closed when the load has failed
	calm    chan struct{} // closed when no further process is killed
}

func newLiveKill(t *testing.T, options load.Options) *liveKill {
	t.Helper()
	broker, f := realtest.RabbitMQ(t), newPostgres(t, inline)
	k := &liveKill{options: options, domain: f.openDomain(t), events: collect(t, broker), failed: make(chan struct{}), calm: make(chan struct{})}
	for i := range k.members {
		k.members[i] = newMember(t, "chat", append(f.args(shortLease), "-bus", broker.URL())...)
		k.options.Servers = append(k.options.Servers, "http://"+k.members[i].Addr)
	}
	k.options.Patience = patience
	return k
}

// load runs the load, again and again until the last process was killed, so that each point
// is reached on a slow machine too. It returns a channel that is closed at the end.
func (k *liveKill) load(t *testing.T) <-chan struct{} {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for calm := false; !calm; {
			report, err := load.Run(t.Context(), k.options)
			if err != nil {
				t.Error(err)
				close(k.failed)
				return
			}
			report.Write(t.Output())
			select {
			case <-k.calm:
				calm = true
			default:
			}
		}
	}()
	t.Cleanup(func() { <-ended })
	return ended
}

// round kills or stops a server when it reaches a point. A stopped one goes on when its
// leases have expired, and reports that it has lost some.
func (k *liveKill) round(t *testing.T, m *member, act, point string) {
	t.Helper()
	p := &process{Process: m.Process}
	p.arm(t, act, point)
	reached := make(chan bool, 1)
	go func() {
		_, ok := p.Next("reached " + point)
		reached <- ok
	}()
	select {
	case ok := <-reached:
		if !ok {
			t.Fatalf("the server ended before it reached %q: %s", point, p.Stderr())
		}
	case <-k.failed:
		t.Fatalf("the load failed before a server reached %q", point)
	}
	if act == "kill" {
		p.AwaitKilled(t)
		m.Start(t)
		return
	}
	lost := func() int { return strings.Count(p.Stderr(), "event=lease_lost operation=semel_outbox") }
	before := lost()
	if err := pause(t.Context(), 4*shortLease); err != nil {
		t.Fatal(err)
	}
	p.Signal(t, syscall.SIGCONT)
	realtest.Poll(t, "the stopped server to report a lost lease", func() bool { return lost() > before })
}

// published waits until the last change of each group was published, and checks the order.
// It returns how often an event was published again.
func (k *liveKill) published(t *testing.T) int {
	t.Helper()
	realtest.Poll(t, "the publication of the last changes", func() bool {
		rows, err := k.domain.Query(t.Context(), `select id, last_change from groups`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		all, groups := true, 0
		for rows.Next() {
			var id string
			var change int64
			if err := rows.Scan(&id, &change); err != nil {
				t.Fatal(err)
			}
			all = all && k.events.reached(id, change)
			groups++
		}
		if err := rows.Err(); err != nil || groups == 0 {
			t.Fatalf("%d groups, %v", groups, err)
		}
		return all
	})
	k.events.mu.Lock()
	defer k.events.mu.Unlock()
	for _, wrong := range k.events.wrong {
		t.Error(wrong)
	}
	return k.events.repeats
}

// published are the events that the exchange of the chat has received.
type published struct {
	mu      sync.Mutex
	last    map[string]int64 // by group: change of the last event that was new
	seen    map[string]bool  // IDs
	repeats int
	wrong   []string
}

// collect binds a queue to the exchange of the chat, and reads it until the test ends.
func collect(t *testing.T, broker *realtest.Broker) *published {
	t.Helper()
	const exchange = "chat_events"
	conn, err := amqp091.Dial(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.ExchangeDeclare(exchange, amqp091.ExchangeFanout, true, false, false, false, nil)
	}
	queue := broker.Queue(t)
	if err == nil {
		_, err = ch.QueueDeclare(queue, false, false, true, false, nil)
	}
	if err == nil {
		err = ch.QueueBind(queue, "", exchange, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &published{last: make(map[string]int64), seen: make(map[string]bool)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for d := range deliveries {
			p.add(d.Body)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-read
	})
	return p
}

// add checks that a new event has the next number of its group.
func (p *published) add(body []byte) {
	var e bus.Event
	err := json.Unmarshal(body, &e)
	p.mu.Lock()
	defer p.mu.Unlock()
	group := strings.TrimPrefix(e.Topic, bus.GroupTopic(""))
	switch {
	case err != nil:
		p.wrong = append(p.wrong, err.Error())
	case e.ID == "": // not from the outbox
	case p.seen[e.ID]:
		p.repeats++
	case e.Change != p.last[group]+1:
		p.wrong = append(p.wrong, "group "+group+": after change "+strconv.FormatInt(p.last[group], 10)+" came "+strconv.FormatInt(e.Change, 10))
		fallthrough
	default:
		p.seen[e.ID], p.last[group] = true, e.Change
	}
}

// reached reports whether all changes of a group up to this one were published.
func (p *published) reached(group string, change int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[group] == change
}
