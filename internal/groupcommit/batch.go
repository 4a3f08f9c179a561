package groupcommit

import "time"

// Batch is a list of requests that are sent together.
type Batch[Req, Res any] struct {
	// Requests has each key once, in the order of arrival. Joined requests follow.
	Requests []Req

	items        []*Item[Req, Res]
	requestIndex []int     // with Shared: index into Requests of each item
	deadline     time.Time // of the oldest item

	// joinLimit is the size up to which requests may join; zero: none may join.
	joinLimit int
}

// Take removes waiting requests and returns them as a batch. It returns nil if no
// request can be sent now; then the loop ends that Enqueue or Settle has called for.
func (g *Batcher[K, Req, Res]) Take() *Batch[Req, Res] {
	g.mu.Lock()
	items := g.takeWaiting(g.config.MaxBatch)
	if len(items) == 0 {
		g.running--
	}
	g.mu.Unlock()
	if len(items) == 0 {
		return nil
	}
	return g.newBatch(items)
}

// takeWaiting removes up to limit waiting items whose keys are not in flight, and
// returns them in the order of their arrival.
func (g *Batcher[K, Req, Res]) takeWaiting(limit int) []*Item[Req, Res] {
	items := make([]*Item[Req, Res], 0, min(len(g.waiting), limit))
	rest := g.waiting[:0]
	for _, it := range g.waiting {
		if len(items) == limit || !g.acquireKey(it) {
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

// acquireKey reserves the key of the item for one batch. It reports false if another
// batch has the key. With Shared, a key may be in several batches.
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

// newBatch lists the requests of the items. With Shared, items of one key share one
// request.
func (g *Batcher[K, Req, Res]) newBatch(items []*Item[Req, Res]) *Batch[Req, Res] {
	b := &Batch[Req, Res]{Requests: make([]Req, 0, len(items)), items: items, deadline: items[0].deadline}
	if !g.config.Shared {
		for _, it := range items {
			b.Requests = append(b.Requests, it.request)
		}
		return b
	}
	b.requestIndex = make([]int, len(items))
	indexes := make(map[K]int, len(items))
	for i, it := range items {
		k := g.config.Key(&it.request)
		index, shared := indexes[k]
		if !shared {
			index = len(b.Requests)
			indexes[k] = index
			b.Requests = append(b.Requests, it.request)
		}
		b.requestIndex[i] = index
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
		for _, it := range b.items {
			delete(g.inflight, g.config.Key(&it.request))
		}
	}
	g.removePending(len(b.items))
	if more = len(g.waiting) > 0 || len(b.items) > 1; !more {
		g.running--
	}
	g.mu.Unlock()
	for _, it := range b.items {
		close(it.done)
	}
	return more
}

func (b *Batch[Req, Res]) indexOf(item int) int {
	if b.requestIndex == nil {
		return item
	}
	return b.requestIndex[item]
}
