package lane

// some is how many who may still join a batch are awaited together: so few that they are
// there before the store is idle, and so many that it does not work on each by itself.
const some = 8

// join adds to a batch that is on its way those who have come meanwhile, and returns
// their questions. That is over once the batch is as large as was expected, and where
// the processors have other work: what is on its way must not wait for that twice.
func (l *Lane[K, Q, A]) join(b *Batch[Q, A]) []Q {
	before := len(b.items)
	rest := b.expected - before
	if rest <= 0 {
		return nil
	}
	if !l.letCome(min(rest, some)) {
		b.expected = 0
	}
	l.mu.Lock()
	items := l.gather(rest, anyKind)
	l.mu.Unlock()
	b.items = append(b.items, items...)
	for _, it := range items {
		b.Questions = append(b.Questions, it.question)
	}
	return b.Questions[before:]
}
