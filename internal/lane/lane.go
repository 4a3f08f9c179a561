package lane

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Errors of what was never sent: nothing has come of it, and nothing can.
var (
	// ErrFull refuses an item because MaxWaiting wait already.
	ErrFull = errors.New("too many wait")
	// ErrNotSent says that an item was given up before anybody took it.
	ErrNotSent = errors.New("not sent")
)

// Config says what a lane does, and how.
type Config[K comparable, Q, A any] struct {
	// Flush asks for all of qs and answers each, in their order. Without an error
	// it must return as many answers as there are questions. The questions are its own
	// until it returns; after an error for good.
	Flush func(ctx context.Context, qs []Q) ([]A, error)
	// Gather, unless nil, is Flush for a batch that others may join: until more returns
	// none, what it returns is to be answered too, after what came before. It is not to
	// be called any more once Gather has returned. Not for Shared.
	Gather func(ctx context.Context, qs []Q, more func() []Q) ([]A, error)
	// Key says what a question is about, and Compare orders keys.
	Key     func(q *Q) K
	Compare func(a, b K) int
	// Kind, unless nil, tells apart what costs more in one batch than in two: when many
	// wait, a batch is of one kind where that leaves it large enough, and the others go with
	// the next one. Where even a small batch takes a millisecond, being left behind costs
	// more, and many are more. It is zero or more.
	Kind func(q *Q) int
	// Shared lets the questions of one batch that are about one key share one
	// asking and its answer. Otherwise they are in batches of their own, one after
	// the other.
	Shared bool
	// Flushers is the most batches under way at a time, MaxBatch the most
	// questions in one, MaxWaiting the most that wait.
	Flushers, MaxBatch, MaxWaiting int
	// Crowd is how many must wait for one more batch to be begun beside those that
	// are under way: what few would gain by not waiting for each other, a database
	// loses by batches that are small.
	Crowd int
	// Timeout is how long a question may be without an answer, however much of that
	// it waits. A batch has as long as the first of it may still wait.
	Timeout time.Duration
	// Within returns ctx with an end, and what frees it of that; nil:
	// context.WithDeadline.
	Within func(ctx context.Context, end time.Time) (context.Context, func())
	// Steps, unless nil, says when what waits goes on.
	Steps Steps
}

// Lane is where the callers meet. It may be used by any number of goroutines.
type Lane[K comparable, Q, A any] struct {
	config Config[K, Q, A]
	pool   sync.Pool // of items that nobody has any more

	mu      sync.Mutex
	waiting []*Item[Q, A]
	flying  map[K]struct{} // keys of the batches under way, unless Shared
	running int            // batches under way, or about to be
	inside  int            // items that wait or are under way
	pace    pace
	idle    chan struct{} // closed when none is; nil: nobody asks
	rooms   [][]Q         // of batches that were answered, for the questions of others
	watch   *time.Timer   // goes off when the first of those who waited may not any more
	watched bool          // it is set
}

// New returns a lane.
func New[K comparable, Q, A any](c Config[K, Q, A]) *Lane[K, Q, A] {
	l := &Lane[K, Q, A]{config: c, flying: make(map[K]struct{})}
	if l.config.Within == nil {
		l.config.Within = func(ctx context.Context, end time.Time) (context.Context, func()) {
			ctx, cancel := context.WithDeadline(ctx, end)
			return ctx, cancel
		}
	}
	l.pool.New = func() any { return &Item[Q, A]{done: make(chan struct{}, 1)} }
	return l
}

// Item is one question on its way.
type Item[Q, A any] struct {
	question Q
	until    time.Time     // it may be without an answer
	taken    bool          // a batch has it
	left     bool          // a batch of another kind has left it behind
	done     chan struct{} // told once there is one

	answer A
	err    error

	alone  Batch[Q, A] // of it only
	itself [1]*Item[Q, A]
}

// Settled reports whether there is an answer. It is for those who do not wait.
func (it *Item[Q, A]) Settled() bool { return len(it.done) > 0 }

// Join adds a question, however many wait if it must. With a batch, which is of
// this question only, the caller is to ask for it and to settle it. Otherwise,
// with start, somebody is to call Take, and to go on from there.
func (l *Lane[K, Q, A]) Join(q Q, must bool) (it *Item[Q, A], alone *Batch[Q, A], start bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.config.MaxWaiting && !must {
		return nil, nil, false, ErrFull
	}
	it = l.pool.Get().(*Item[Q, A])
	it.question, it.until = q, time.Now().Add(l.config.Timeout) //nolint:forbidigo // compared with nothing of the store's
	l.inside++
	if start = l.mayStart(); start {
		l.running++
	}
	if start && len(l.waiting) == 0 && l.fly(it) {
		it.taken, it.itself[0] = true, it
		it.alone = Batch[Q, A]{Questions: append(l.roomy(), q), items: it.itself[:], until: it.until}
		return it, &it.alone, false, nil
	}
	l.waiting = append(l.waiting, it)
	l.look(it.until)
	return it, nil, start, nil
}

// mayStart says whether one more batch is worth starting now.
func (l *Lane[K, Q, A]) mayStart() bool {
	return l.running == 0 || l.running < l.config.Flushers && len(l.waiting)+1 >= l.config.Crowd
}

// Leave gives an item up that nobody has taken, so that nothing comes of it. It
// reports whether that is so.
func (l *Lane[K, Q, A]) Leave(it *Item[Q, A]) (unsent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if it.taken {
		return false
	}
	for i, other := range l.waiting {
		if other == it {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			break
		}
	}
	l.out(1)
	return true
}

// out counts those who are not inside any more.
func (l *Lane[K, Q, A]) out(n int) {
	if l.inside -= n; l.inside == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// recycle keeps an item for another question.
func (l *Lane[K, Q, A]) recycle(it *Item[Q, A]) {
	*it = Item[Q, A]{done: it.done}
	l.pool.Put(it)
}
