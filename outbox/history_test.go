package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store/storetest"
)

// TestHistory: transactions that commit or do not, relays that come and go over a store with
// faults, a broker that refuses, panics and has events that it never takes, and an operator who redrives
// or drops these. Each committed event that was not dropped is published, and the first publications of
// each aggregate have its order.
func TestHistory(t *testing.T) { t.Parallel(); onAll(t, suite{history[*sql.Tx], history[pgx.Tx]}) }

// silent is an observer of many expected alarms.
type silent struct{}

func (silent) Observe(context.Context, event.Event) {}

// expected is what must be published.
type expected struct {
	mu        sync.Mutex
	committed map[string][]string // bodies by aggregate
	healed    map[string]bool     // bodies that the broker takes after a redrive
	bodies    map[string]string   // by event ID
	dropped   []string
}

func (l *expected) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

const historyAggregates = 6

func history[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l := &expected{committed: map[string][]string{}, healed: map[string]bool{}, bodies: map[string]string{}}
	b := newBroker(t)
	b.fail = l.broker
	faults := storetest.NewFaultyTx(d.Store, func(storetest.Call) storetest.Fault {
		if rand.IntN(40) > 0 {
			return storetest.Fault{}
		}
		return []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()}[rand.IntN(3)]
	})
	writer := newEngine(t, d.Store, semel.Options{})
	ended := make(chan struct{})
	var relays, writers sync.WaitGroup
	for range 3 {
		relays.Go(func() {
			for {
				e := newEngine(t, faults, semel.Options{Lease: time.Second, Observer: silent{}})
				old := make(chan struct{}) // closed after some messages
				var left atomic.Int64
				left.Store(1 + rand.Int64N(20))
				stop := start(t, e, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
					if left.Add(-1) == 0 {
						close(old)
					}
					return b.Publish(ctx, m)
				}), outbox.Options{Poll: 20 * time.Millisecond, Batch: 1 + rand.IntN(10), MaxFailures: 3})
				select {
				case <-ended:
					stop()
					return
				case <-old:
					stop()
				}
			}
		})
	}
	n := 40
	if testing.Short() {
		n = 8
	}
	for i := range historyAggregates {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		writers.Go(func() { write(t, l, d, writer, random, fmt.Sprint("agg", i), n) })
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	realtest.Poll(t, "an empty outbox", func() bool {
		redrive(t, l, writer)
		select {
		case <-written:
		default:
			return false
		}
		s := check.Must(outbox.StatsOf(t.Context(), writer))(t)
		return s == outbox.Stats{}
	})
	close(ended)
	relays.Wait()
	for name, want := range l.committed {
		want = slices.DeleteFunc(want, func(body string) bool { return slices.Contains(l.dropped, body) })
		if got := b.of(name); !slices.Equal(got, want) {
			t.Errorf("%s: the first publications are %v, want %v", name, got, want)
		}
	}
	t.Logf("%d publications, %d dropped, %d healed", b.count(), len(l.dropped), len(l.healed))
}

// broker decides about a message.
func (l *expected) broker(_ context.Context, m outbox.Message) (err error) {
	body := string(m.Payload)
	l.do(func() {
		l.bodies[m.ID] = body
		if m.Type == "Poison" && !l.healed[body] {
			err = outbox.Permanent(errRefused)
		}
	})
	switch n := rand.IntN(50); {
	case err != nil:
	case n == 0:
		panic("the publisher has a fault")
	case n < 4:
		err = errRefused
	}
	return err
}

// write commits events of an aggregate, one transaction after the other.
func write[Tx any](t *testing.T, l *expected, d *database[Tx], e *semel.Engine[Tx], random *rand.Rand, name string, n int) {
	t.Helper()
	for i := range n {
		events, list := numbered(fmt.Sprintf("%s-%d", name, i), 1+random.IntN(3))
		for j := range events {
			events[j].Aggregate = name
			if random.IntN(15) == 0 {
				events[j].Type = "Poison"
			}
		}
		x := d.begin()
		check.Require(t, outbox.AppendTx(t.Context(), e, x.tx, events...))
		if random.IntN(5) == 0 {
			x.rollback()
			continue
		}
		l.do(func() { l.committed[name] = append(l.committed[name], list...) })
		x.commit()
	}
}

// redrive redrives parked aggregates, or drops their events.
func redrive[Tx any](t *testing.T, l *expected, e *semel.Engine[Tx]) {
	t.Helper()
	for _, p := range check.Must(outbox.ParkedOf(t.Context(), e, 100))(t) {
		r := redriveOf(p.Aggregate)
		r.Drop, r.EventID = rand.IntN(2) == 0, p.EventID
		var body string
		l.do(func() {
			body = l.bodies[p.EventID]
			l.healed[body] = l.healed[body] || !r.Drop
		})
		was, err := outbox.Redrive(t.Context(), e, r)
		switch {
		case err != nil && !errors.Is(err, semel.ErrUnavailable): // it was rolled back because of a conflict
			t.Error(err)
		case was && r.Drop:
			l.do(func() { l.dropped = append(l.dropped, body) })
		}
	}
}
