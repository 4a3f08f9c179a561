//go:build unix && !race

package server_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/load"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestLiveDeliveryWhileServersAreKilled lets clients that reconnect at random send messages
// through two servers, which are killed and stopped beyond their leases at the points of a
// message and of its publication. Every message is stored once, every client has a complete
// view without duplicates (package load verifies both), and every event is published at least
// once, in the order of its group.
func TestLiveDeliveryWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	options := load.Options{Clients: 200, Messages: 1000, Rate: 100, Drop: 10 * time.Second}
	acts := []string{"kill", "stop"}
	points := []string{beforePublish, afterPublish, beforeCommit, afterCommit}
	if testing.Short() {
		options = load.Options{Clients: 16, Messages: 200, Rate: 100, Drop: time.Second}
		points = []string{afterPublish, beforeCommit}
	}
	k := newLiveKill(t, options)
	i := 0
	for _, act := range acts {
		for _, point := range points {
			k.round(t, k.members[i%2], act, point)
			i++
		}
	}
	k.calm()
	k.published(t)
	// A relay was killed between the publication and its removal.
	realtest.Poll(t, "an event that is published again", func() bool { return k.events.repeated() > 0 })
	t.Logf("%d kills and stops, %d events were published again", i, k.events.repeated())
}

// exchange is the bus of the two servers.
const exchange = "chat_killed"

// liveKill is two servers on one PostgreSQL and one RabbitMQ, under load.
type liveKill struct {
	*clients

	members [2]*realtest.Restartable
	domain  chatdb.Querier
	events  *published
}

func newLiveKill(t *testing.T, options load.Options) *liveKill {
	t.Helper()
	broker, f := realtest.RabbitMQ(t), newPostgres(t, inline)
	k := &liveKill{domain: f.openDomain(t), events: collect(t, broker)}
	for i := range k.members {
		k.members[i] = restartable(t, append(f.args(shortLease), "-bus", broker.URL(), "-bus-name", exchange)...)
		options.Servers = append(options.Servers, "http://"+k.members[i].Addr)
	}
	k.clients = sendMessages(t, options)
	return k
}

// round kills or stops a server when it reaches a point. A stopped one goes on when its
// leases have expired. If it was publishing, it reports that it has lost one.
func (k *liveKill) round(t *testing.T, m *realtest.Restartable, act, point string) {
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
	check.Require(t, pause(t.Context(), 4*shortLease))
	p.Signal(t, syscall.SIGCONT)
	if point == beforeCommit || point == afterCommit {
		return // perhaps the other server publishes the events of all groups
	}
	realtest.Poll(t, "the stopped server to report a lost lease", func() bool { return lost() > before })
}

// published waits until the last change of each group was published, and checks the order.
func (k *liveKill) published(t *testing.T) {
	t.Helper()
	realtest.Poll(t, "the publication of the last changes", func() bool {
		rows := check.Must(k.domain.Query(t.Context(), `select id, last_change from groups`))(t)
		defer rows.Close()
		all, groups := true, 0
		for rows.Next() {
			var id string
			var change int64
			check.Require(t, rows.Scan(&id, &change))
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
}

// published are the events that the exchange of the chat has received.
type published struct {
	mu      sync.Mutex
	last    map[string]int64 // by group: change of the last event that was new
	seen    map[string]bool  // IDs
	repeats int
	wrong   []string
}

// collect reads what the servers publish, as a further server does, until the test ends.
func collect(t *testing.T, broker *realtest.Broker) *published {
	t.Helper()
	events := bus.NewRabbitMQ(broker.URL(), exchange)
	p := &published{last: make(map[string]int64), seen: make(map[string]bool)}
	begun, ended := make(chan struct{}), make(chan error, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		ended <- events.Subscribe(ctx, func(e bus.Event) {
			begin() // the first event says that the subscription has begun
			p.add(e)
		})
	}()
	t.Cleanup(func() {
		cancel()
		check.ErrorIs(t, <-ended, context.Canceled, "Subscribe")
		events.Close()
	})
	<-begun
	return p
}

// add checks that a new event has the next number of its group.
func (p *published) add(e bus.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	group := strings.TrimPrefix(e.Topic, bus.GroupTopic(""))
	switch {
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

// repeated returns how often an event was published again.
func (p *published) repeated() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repeats
}
