package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

var errRefused = errors.New("refused by the broker")

// broker is a publisher that keeps what it has confirmed.
type broker struct {
	t *testing.T
	// fail decides about a message before it is confirmed. It may block.
	fail func(ctx context.Context, m outbox.Message) error

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with each change
	messages []outbox.Message
	failures int
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	return &broker{t: t, changed: make(chan struct{})}
}

// Publish confirms m, or fails as fail says.
func (b *broker) Publish(ctx context.Context, m outbox.Message) error {
	var err error
	if b.fail != nil {
		err = b.fail(ctx, m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.messages = append(b.messages, m)
	} else {
		b.failures++
	}
	b.notify()
	return err
}

func (b *broker) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// until waits until done reports true about the confirmed messages and the failures.
func (b *broker) until(what string, done func(all []outbox.Message, failures int) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for {
		b.mu.Lock()
		ok, changed := done(b.messages, b.failures), b.changed
		got := bodies(b.messages)
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.t.Fatalf("%s: never, after %v", what, got)
		}
	}
}

// gets waits until the bodies were published, in any order and perhaps more than once.
func (b *broker) gets(want ...string) {
	b.t.Helper()
	b.until("get "+want[0]+" and so on", func(all []outbox.Message, _ int) bool {
		got := bodies(all)
		return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
	})
}

// of returns the bodies of an aggregate without repetitions.
func (b *broker) of(aggregate string) (first []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		if m.Aggregate == aggregate && !slices.Contains(first, string(m.Payload)) {
			first = append(first, string(m.Payload))
		}
	}
	return first
}

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.messages)
}

func bodies(all []outbox.Message) (list []string) {
	for _, m := range all {
		list = append(list, string(m.Payload))
	}
	return list
}

// about returns an event of an aggregate.
func about(aggregate, body string) outbox.Event {
	return outbox.Event{Topic: "orders", Aggregate: aggregate, Type: "Changed", Payload: []byte(body)}
}

// redriveOf returns an operator's request for an aggregate of about.
func redriveOf(aggregate string) outbox.RedriveRequest {
	return outbox.RedriveRequest{Topic: "orders", Aggregate: aggregate, Actor: "ann", Reason: "fixed"}
}

// numbered returns n events of an aggregate, and their bodies.
func numbered(aggregate string, n int) (events []outbox.Event, list []string) {
	for i := range n {
		body := aggregate + "-" + strconv.Itoa(i)
		events, list = append(events, about(aggregate, body)), append(list, body)
	}
	return events, list
}

// quick are options for tests: other processes are noticed soon.
var quick = outbox.Options{Poll: 20 * time.Millisecond}

// start runs a relay of e. The function that it returns stops it.
func start[Tx any](t *testing.T, e *semel.Engine[Tx], p outbox.Publisher, o outbox.Options) (stop func()) {
	t.Helper()
	r := check.Must(outbox.NewRelay(e, p, o))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// alarms records the alarms of an engine.
type alarms struct {
	mu      sync.Mutex
	all     []event.Event
	changed chan struct{}
}

func newAlarms() *alarms { return &alarms{changed: make(chan struct{}, 1000)} }

// Observe implements event.Observer.
func (a *alarms) Observe(_ context.Context, e event.Event) {
	if !e.Alarm() || e.Kind == event.NotDurable {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, e)
	a.changed <- struct{}{}
}

// next waits for an alarm.
func (a *alarms) next(t *testing.T) event.Event {
	t.Helper()
	select {
	case <-a.changed:
	case <-time.After(time.Minute):
		t.Fatal("no alarm")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[len(a.all)-1]
}

// emptied waits until the outbox has no events: the removal follows the confirmation.
func emptied[Tx any](t *testing.T, e *semel.Engine[Tx]) {
	t.Helper()
	realtest.Poll(t, "an empty outbox", func() bool { return check.Must(outbox.StatsOf(t.Context(), e))(t).Events == 0 })
}

// otherLane returns an aggregate in another lane.
func otherLane(aggregate string) string {
	for i := 0; ; i++ {
		if name := "other" + strconv.Itoa(i); outbox.LaneOf("orders", name) != outbox.LaneOf("orders", aggregate) {
			return name
		}
	}
}

// sameLane returns another aggregate in the lane of one.
func sameLane(aggregate string) string {
	for i := 0; ; i++ {
		if name := "neighbour" + strconv.Itoa(i); outbox.LaneOf("orders", name) == outbox.LaneOf("orders", aggregate) {
			return name
		}
	}
}
