package groupcommit

// minJoin is the number of joining requests to wait for. It is small enough that they
// arrive before the store is idle, and large enough that the store does not process
// each of them alone.
const minJoin = 8

// join adds waiting requests to a running batch and returns them. It adds none once
// the batch has reached joinLimit. It stops adding when yielding was slow, because
// the processors have other work: a running batch must not wait for that twice.
func (g *Batcher[K, Req, Res]) join(b *Batch[Req, Res]) []Req {
	before := len(b.items)
	rest := b.joinLimit - before
	if rest <= 0 {
		return nil
	}
	if !g.yieldForMore(min(rest, minJoin)) {
		b.joinLimit = 0
	}
	g.mu.Lock()
	items := g.takeWaiting(rest)
	g.mu.Unlock()
	b.items = append(b.items, items...)
	for _, it := range items {
		b.Requests = append(b.Requests, it.request)
	}
	return b.Requests[before:]
}
