package console

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/clock"
)

const (
	// batchMinutes is how many minutes of batches are counted.
	batchMinutes = 10
	// batchClasses is the number of classes of sizes: 1, 2, 3 to 4, 5 to 8 and so on. The
	// last one has no upper bound.
	batchClasses = 12
)

// BatchSizes counts the sizes of an engine's batches over the last ten minutes, for the
// overview. It is the engine's Observer, or the next one of an Observer that passes batches
// on, such as that of package semelotel:
//
//	sizes := &console.BatchSizes{Next: event.Slog(log)}
//	engine, err := semel.New(s, semel.Options{Observer: sizes})
//	pages, err := console.Handler([]console.Engine{{Runner: engine, Batches: sizes}}, options)
//
// The counts are of this process only, are lost when it ends, and need 1.2 kB.
type BatchSizes struct {
	// Next also receives each event, and each batch if it is an event.BatchObserver. Nil:
	// none. It must not change while the engine is used.
	Next event.Observer

	mu      sync.Mutex
	minutes [batchMinutes]batchInterval
}

var _ event.BatchObserver = (*BatchSizes)(nil)

// batchInterval counts the batches of one minute.
type batchInterval struct {
	minute  int64 // since 1970
	trips   [batchClasses]int64
	changes int64
	largest int
}

// Observe passes an event on.
func (b *BatchSizes) Observe(ctx context.Context, e event.Event) {
	if b.Next != nil {
		b.Next.Observe(ctx, e)
	}
}

// ObserveBatch counts a batch, and passes it on.
func (b *BatchSizes) ObserveBatch(ctx context.Context, changes int) {
	b.count(changes)
	if next, ok := b.Next.(event.BatchObserver); ok {
		next.ObserveBatch(ctx, changes)
	}
}

func (b *BatchSizes) count(changes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := minuteOf(clock.Now())
	m := &b.minutes[now%batchMinutes]
	if m.minute != now {
		*m = batchInterval{minute: now}
	}
	m.trips[min(bits.Len(uint(max(changes, 1)-1)), batchClasses-1)]++
	m.changes += int64(changes)
	m.largest = max(m.largest, changes)
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// batchTotal sums up the batches of the last minutes.
type batchTotal struct {
	Trips, Changes int64
	Largest        int
	Classes        []batchClass // up to that of the largest batch
}

// batchClass are the batches of similar sizes.
type batchClass struct {
	From, To int // To is 0 if there is no upper bound
	Trips    int64
	W        float64 // the share of the round trips, in per cent
}

// Mean returns the mean size.
func (t *batchTotal) Mean() float64 { return float64(t.Changes) / float64(max(t.Trips, 1)) }

// total returns the counts, or nil without a BatchSizes.
func (b *BatchSizes) total() *batchTotal {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t, trips := new(batchTotal), [batchClasses]int64{}
	oldest := minuteOf(clock.Now()) - batchMinutes
	for i := range b.minutes {
		m := &b.minutes[i]
		if m.minute <= oldest {
			continue
		}
		t.Changes += m.changes
		t.Largest = max(t.Largest, m.largest)
		for class, n := range m.trips {
			trips[class] += n
			t.Trips += n
		}
	}
	for class, from := 0, 1; class < batchClasses && from <= t.Largest; class++ {
		to := 1 << class
		c := batchClass{From: from, To: to, Trips: trips[class], W: 100 * float64(trips[class]) / float64(t.Trips)}
		if from = to + 1; class == batchClasses-1 {
			c.To = 0
		}
		t.Classes = append(t.Classes, c)
	}
	return t
}
