package console_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// batched is a store that wants batches, as all but those in memory do.
type batched struct{ store.Store }

func (s batched) Capabilities(ctx context.Context) (store.Capabilities, error) {
	caps, err := s.Store.Capabilities(ctx)
	caps.ConcurrentSwaps = 1
	return caps, err
}

// nextObserver is the Next of a BatchSizes.
type nextObserver struct {
	events  int
	changes []int
}

func (o *nextObserver) Observe(context.Context, event.Event) { o.events++ }
func (o *nextObserver) ObserveBatch(_ context.Context, changes int) {
	o.changes = append(o.changes, changes)
}

// The overview has a line for each class of sizes up to the largest.
func TestBatchSizes(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	next := &nextObserver{}
	g.sizes.Next = next
	for _, changes := range []int{1, 2, 3, 4, 8, 8, 1000} {
		g.sizes.ObserveBatch(t.Context(), changes)
	}
	g.sizes.Observe(t.Context(), event.Event{Kind: event.Claimed})
	check.Equal(t, len(next.changes), 7, "batches that the next observer has received")
	check.Equal(t, next.events, 1, "events that the next observer has received")
	page := g.get(t, "").has(t, http.StatusOK, "1,026 changes of records in 7 round trips: 146.6 on average, 1,000 at most")
	for class, texts := range map[string][2]string{
		"1": {`>1</td>`, `width="14.29"`}, "3 to 4": {`>2</td>`, `width="28.57"`}, "9 to 16": {`>0</td>`, `width="0.00"`}, "513 to 1,024": {`>1</td>`, `width="14.29"`},
	} {
		page.row(t, `class="num">`+class+`</th>`).has(t, http.StatusOK, texts[0], texts[1])
	}
	page.hasNot(t, "1,025 or more", "No batch was sent")
	g.sizes.ObserveBatch(t.Context(), 5000)
	g.get(t, "").has(t, http.StatusOK, "1,025 or more")
}

// An engine reports its batches, and batches that are older than ten minutes are forgotten.
func TestBatchSizesOfAnEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sizes := &console.BatchSizes{}
		op := semel.Define("op", semel.OperationOptions[string]{})
		engine := check.Must(semel.NewRunner(batched{memory.New(memory.Options{})}, semel.Options{Survive: store.NoFailure, Observer: sizes}))(t)
		b := newBubble(t, console.Engine{Runner: engine, Batches: sizes})
		call := func(key string) {
			_, _, err := semel.Do(t.Context(), engine, op.Call(semel.Shared(), key, ""), func(context.Context) (string, error) { return "", nil })
			check.Require(t, err)
		}
		call("a")
		b.get(t, "/").has(t, http.StatusOK, "2 changes of records in 2 round trips: 1.0 on average, 1 at most")
		pass(5 * time.Minute)
		call("b")
		b.get(t, "/").has(t, http.StatusOK, "4 changes of records in 4 round trips")
		pass(6 * time.Minute)
		b.get(t, "/").has(t, http.StatusOK, "2 changes of records in 2 round trips")
		pass(5 * time.Minute)
		b.get(t, "/").has(t, http.StatusOK, "No batch was sent in the last 10 minutes").hasNot(t, "not known here")
	})
}

// A console in another process than the engine says that it cannot know the sizes.
func TestUnknownBatchSizes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
		newBubble(t, console.Engine{Runner: engine}).get(t, "/").
			has(t, http.StatusOK, "The sizes of batches are not known here. Only the process that sends batches can count them").
			hasNot(t, "round trips")
	})
}
