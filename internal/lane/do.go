package lane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Do asks one question together with others' and returns the answer. An error of
// Flush is told to all whose questions were in it. When ctx ends first, the error
// is ctx's, with [ErrNotSent] if nothing was sent, and is a *[LeftError] otherwise. Must
// is as for Join.
func (l *Lane[K, Q, A]) Do(ctx context.Context, q Q, must bool) (answer A, err error) {
	it, alone, start, err := l.Join(q, must)
	switch {
	case err != nil:
		return answer, err
	case alone != nil && l.ask(ctx, alone), start:
		l.run(l.flush)
	}
	switch {
	case l.wait(ctx, it):
		return l.answer(it)
	case l.Leave(it):
		return answer, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	default:
		return answer, &LeftError[A]{cause: ctx.Err(), wait: func() (A, error) { //nolint:contextcheck // the asker's has ended
			l.wait(context.Background(), it)
			return l.answer(it)
		}}
	}
}

// answer takes the answer out of a settled item.
func (l *Lane[K, Q, A]) answer(it *Item[Q, A]) (A, error) {
	answer, err := it.answer, it.err
	l.recycle(it)
	return answer, err
}

// LeftError is the error of a question that was given up when it was on its way: its
// answer is still to come.
type LeftError[A any] struct {
	cause error
	wait  func() (A, error)
}

// Error says why it was given up.
func (e *LeftError[A]) Error() string { return "given up on its way: " + e.cause.Error() }

// Unwrap returns why it was given up.
func (e *LeftError[A]) Unwrap() error { return e.cause }

// Wait returns the answer once it is there. It is to be called once at most.
func (e *LeftError[A]) Wait() (A, error) { return e.wait() }

// flush asks for what waits until nothing does.
func (l *Lane[K, Q, A]) flush() {
	expected := few
	for more := true; more; {
		enough := expected
		if l.config.Gather != nil {
			enough = few // the others can join
		}
		idle := l.letCome(enough)
		b := l.Take()
		if b == nil {
			return
		}
		if l.config.Gather != nil && idle {
			b.expected = min(expected, l.config.MaxBatch)
		}
		more = l.ask(context.Background(), b)
		expected = max(few, l.share(len(b.items)))
	}
}

const (
	// few is a batch so small that it always pays to let others run before it is sent.
	few = 4
	// turns is how often others may run without anybody's coming of it. It takes some
	// microseconds, in which those may come who run on other processors.
	turns = 50
	// patience is how long others may run likewise: where the processors have other work,
	// a turn takes tens of milliseconds.
	patience = 100 * time.Microsecond
)

// letCome lets others run until as many wait as are enough, or no more seem to come:
// those who were just answered will ask again, and together they cost little more than
// one. Nobody waits for them: what runs, runs anyway. It reports false when they took
// longer than patience without anybody's coming: the processors have other work then.
func (l *Lane[K, Q, A]) letCome(enough int) bool {
	if l.config.Steps != nil {
		return true
	}
	came, last := l.queued(), time.Now() //nolint:forbidigo // compared with nothing of the store's
	for idle := 0; came < enough && idle < turns; idle++ {
		runtime.Gosched()
		switch now := l.queued(); {
		case now > came:
			came, idle, last = now, -1, time.Now() //nolint:forbidigo // as above
		case time.Since(last) > patience: //nolint:forbidigo // as above
			return false
		}
	}
	return true
}

// share is what each batch would have, if so many who were just answered asked again,
// and all were shared out evenly.
func (l *Lane[K, Q, A]) share(answered int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return (answered + l.inside) / max(l.running, 1)
}

// queued tells how many wait.
func (l *Lane[K, Q, A]) queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

var errNoReturn = errors.New("lane: Flush did not return")

// ask asks for a batch, and reports whether others wait. A Flush that panics has
// given no answer: who then asks alone finds out whose question it was.
func (l *Lane[K, Q, A]) ask(ctx context.Context, b *Batch[Q, A]) (more bool) {
	answers, err := []A(nil), errNoReturn
	returned := false
	defer func() {
		if p := recover(); p != nil {
			err, returned = fmt.Errorf("lane: Flush panicked: %v", p), true
		}
		if more = l.Settle(b, answers, err); more && !returned {
			l.run(l.flush) // the goroutine ends, and nobody else goes on
		}
	}()
	ctx, end := l.config.Within(ctx, b.until)
	defer end()
	began := time.Now() //nolint:forbidigo // compared with nothing of the store's
	if b.expected > len(b.items) {
		answers, err = l.config.Gather(ctx, b.Questions, func() []Q { return l.join(b) })
	} else {
		answers, err = l.config.Flush(ctx, b.Questions)
	}
	b.took, returned = time.Since(began), true //nolint:forbidigo // as above
	return more
}

// Wait waits until nothing is under way, or ctx ends.
func (l *Lane[K, Q, A]) Wait(ctx context.Context) error {
	l.mu.Lock()
	if l.inside == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
