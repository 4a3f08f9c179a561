package groupcommit

import (
	"slices"
	"time"
)

// Batch is a list of requests that are sent together.
type Batch[Req, Res any] struct {
	// Requests has the requests of the batch in the order of their keys, each key
	// once. Joined requests follow in the order of their arrival.
	Requests []Req

	items        []*Item[Req, Res] // in the order of Requests; with Shared, several per request
	requestIndex []int             // index into Requests of each item; nil: the item's own index
	deadline     time.Time         // of the oldest item
	elapsed      time.Duration     // duration of the flush; zero: unknown

	// joinLimit is the size up to which requests may join; zero: none may join.
	joinLimit int
}

// Take removes waiting requests and returns them as a batch. It returns nil if no
// request can be sent now; then the loop ends that Enqueue or Settle has called for.
func (g *Batcher[K, Req, Res]) Take() *Batch[Req, Res] {
	g.mu.Lock()
	items := g.takeWaiting(g.config.MaxBatch, g.nextKind())
	if len(items) == 0 {
		g.running--
		g.mu.Unlock()
		return nil
	}
	buffer := g.buffer()
	g.mu.Unlock()
	return g.newBatch(items, buffer)
}

// buffer returns an empty request slice for reuse, or nil.
func (g *Batcher[K, Req, Res]) buffer() []Req {
	last := len(g.buffers) - 1
	if last < 0 {
		return nil
	}
	buffer := g.buffers[last]
	g.buffers = g.buffers[:last]
	return buffer
}

// takeWaiting removes up to limit waiting items of a kind whose keys are not in
// flight, and returns them in the order of their arrival.
func (g *Batcher[K, Req, Res]) takeWaiting(limit, kind int) []*Item[Req, Res] {
	items := make([]*Item[Req, Res], 0, min(len(g.waiting), limit))
	rest := g.waiting[:0]
	for _, it := range g.waiting {
		other := kind != anyKind && g.config.Kind(&it.request) != kind
		if len(items) == limit || other || !g.acquireKey(it) {
			it.skipped = it.skipped || other
			rest = append(rest, it)
			continue
		}
		it.taken = true
		items = append(items, it)
	}
	clear(g.waiting[len(rest):])
	g.waiting = rest
	return items
}

const (
	anyKind = -1
	// maxMixed is the size up to which a batch contains all kinds: the larger batch
	// gains more than a single kind does. With high latency the limit is
	// maxMixedSlow, because a skipped request waits for one more round trip.
	maxMixed     = 16
	maxMixedSlow = 64
	// minKindShare is the share of the waiting requests that is enough for a batch of
	// a single kind: one in minKindShare.
	minKindShare = 3
)

// nextKind chooses the kind of the next batch: the kind of the oldest skipped item,
// else of the oldest item; or anyKind if that kind has too few items. A skipped item
// is therefore in the next batch, or in the first one after its key is free. Callers
// whose requests were settled together send the next ones together, so their batches
// stay of one kind.
func (g *Batcher[K, Req, Res]) nextKind() int {
	limit := maxMixed
	if g.latency.isHigh() {
		limit = maxMixedSlow
	}
	if g.config.Kind == nil || len(g.waiting) <= limit {
		return anyKind
	}
	oldest := g.oldest()
	if oldest == nil {
		return anyKind
	}
	kind, same := g.config.Kind(&oldest.request), 0
	for _, it := range g.waiting {
		if g.config.Kind(&it.request) == kind {
			same++
		}
	}
	if same*minKindShare < len(g.waiting) {
		return anyKind
	}
	return kind
}

// oldest returns the oldest skipped item, else the oldest item. It ignores items
// whose keys are in flight.
func (g *Batcher[K, Req, Res]) oldest() (first *Item[Req, Res]) {
	for _, it := range g.waiting {
		switch {
		case first != nil && !it.skipped || g.keyInflight(it):
		case it.skipped:
			return it
		default:
			first = it
		}
	}
	return first
}

// keyInflight reports whether a running batch contains the key of the item. With
// Shared, a key may be in several batches, so the result is false.
func (g *Batcher[K, Req, Res]) keyInflight(it *Item[Req, Res]) bool {
	if g.config.Shared {
		return false
	}
	_, inflight := g.inflight[g.config.Key(&it.request)]
	return inflight
}

// acquireKey reserves the key of the item for one batch. It reports false if another
// batch has the key.
func (g *Batcher[K, Req, Res]) acquireKey(it *Item[Req, Res]) bool {
	if g.config.Shared {
		return true
	}
	k := g.config.Key(&it.request)
	if _, inflight := g.inflight[k]; inflight {
		return false
	}
	g.inflight[k] = struct{}{}
	return true
}

// newBatch sorts the items and merges shared requests. It reuses buffer.
func (g *Batcher[K, Req, Res]) newBatch(items []*Item[Req, Res], buffer []Req) *Batch[Req, Res] {
	deadline := items[0].deadline
	slices.SortStableFunc(items, func(a, b *Item[Req, Res]) int {
		return g.config.Compare(g.config.Key(&a.request), g.config.Key(&b.request))
	})
	b := &Batch[Req, Res]{Requests: slices.Grow(buffer, len(items)), items: items, deadline: deadline}
	if g.config.Shared {
		b.requestIndex = make([]int, len(items))
	}
	for i, it := range items {
		same := g.config.Shared && i > 0 && g.config.Key(&items[i-1].request) == g.config.Key(&it.request)
		if !same {
			b.Requests = append(b.Requests, it.request)
		}
		if g.config.Shared {
			b.requestIndex[i] = len(b.Requests) - 1
		}
	}
	return b
}

// Settle gives each item of a batch its result, or err. It reports whether the
// caller must call Take again: because requests wait, or because the batch had
// several items whose callers are about to send the next requests.
func (g *Batcher[K, Req, Res]) Settle(b *Batch[Req, Res], results []Res, err error) (more bool) {
	for i, it := range b.items {
		if it.err = err; err == nil {
			it.result = results[b.indexOf(i)]
		}
	}
	g.mu.Lock()
	if !g.config.Shared {
		for i := range b.Requests {
			delete(g.inflight, g.config.Key(&b.Requests[i]))
		}
	}
	if err == nil {
		// After an error Flush may still read the slice, so it is not reused.
		clear(b.Requests)
		g.buffers, b.Requests = append(g.buffers, b.Requests[:0]), nil
		g.latency.add(len(b.items), b.elapsed)
	}
	g.removePending(len(b.items))
	if more = len(g.waiting) > 0 || len(b.items) > 1; !more {
		g.running--
	}
	g.mu.Unlock()
	for _, it := range b.items {
		it.done <- struct{}{}
	}
	return more
}

func (b *Batch[Req, Res]) indexOf(item int) int {
	if b.requestIndex == nil {
		return item
	}
	return b.requestIndex[item]
}
