package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/lane"
)

// ask is a question: whose it is, about which key.
type ask struct{ key, who int }

// desk answers what a lane asks. It keeps what came together, and waits for its
// gate, if it has one, before it answers.
type desk struct {
	mu      sync.Mutex
	batches [][]ask
	gate    chan struct{}
	fail    func(batch []ask) error
}

func (d *desk) flush(ctx context.Context, asks []ask) ([]ask, error) {
	d.mu.Lock()
	d.batches = append(d.batches, slices.Clone(asks))
	d.mu.Unlock()
	if d.gate != nil {
		select {
		case <-d.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if d.fail != nil {
		if err := d.fail(asks); err != nil {
			return nil, err
		}
	}
	return asks, nil
}

func (d *desk) seen() [][]ask {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.batches)
}

// open opens a lane to d, if change does not say where else.
func open(d *desk, change func(*lane.Config[int, ask, ask])) *lane.Lane[int, ask, ask] {
	c := lane.Config[int, ask, ask]{
		Flush: d.flush, Key: func(a *ask) int { return a.key }, Compare: func(a, b int) int { return a - b },
		Flushers: 1, Crowd: 1, MaxBatch: 100, MaxWaiting: 1000, Timeout: time.Minute,
	}
	if change != nil {
		change(&c)
	}
	return lane.New(c)
}

// crowd asks for each of asks on a goroutine of its own, and returns what came of
// them once they are over.
func crowd(ctx context.Context, l *lane.Lane[int, ask, ask], asks ...ask) (wait func() ([]ask, []error)) {
	var all sync.WaitGroup
	answers, errs := make([]ask, len(asks)), make([]error, len(asks))
	for i, a := range asks {
		all.Go(func() { answers[i], errs[i] = l.Do(ctx, a, false) })
		synctest.Wait() // so that they come in their order
	}
	return func() ([]ask, []error) {
		all.Wait()
		return answers, errs
	}
}

func TestALoneCallerAsksByItself(t *testing.T) {
	t.Parallel()
	type key struct{}
	var under any
	ctx := context.WithValue(t.Context(), key{}, "mine")
	own := open(nil, func(c *lane.Config[int, ask, ask]) {
		c.Flush = func(ctx context.Context, asks []ask) ([]ask, error) {
			under = ctx.Value(key{})
			return asks, nil
		}
	})
	if _, err := own.Do(ctx, ask{1, 1}, false); err != nil || under != "mine" {
		t.Errorf("asked under a context with %v (%v), want the caller's own", under, err)
	}
	d := &desk{}
	l := open(d, nil)
	for i := range 3 {
		if got, err := l.Do(t.Context(), ask{1, i}, false); err != nil || got.who != i {
			t.Errorf("Do = %v, %v, want the answer to %d", got, err, i)
		}
	}
	if got := d.seen(); len(got) != 3 {
		t.Errorf("asked %v, want each by itself", got)
	}
}

func TestWhoComesMeanwhileGoesTogetherInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		wait := crowd(t.Context(), open(d, nil), ask{5, 0}, ask{9, 1}, ask{3, 2}, ask{7, 3})
		close(d.gate)
		answers, errs := wait()
		for i := range answers {
			if errs[i] != nil || answers[i].who != i {
				t.Errorf("caller %d was answered %v, %v", i, answers[i], errs[i])
			}
		}
		want := "[[{5 0}] [{3 2} {7 3} {9 1}]]"
		if got := fmt.Sprint(d.seen()); got != want {
			t.Errorf("asked %s, want %s: the first alone, the others together by their keys", got, want)
		}
	})
}

// TestTheAskingGoesOnAfterSeveral: who comes back first does not leave the others
// behind, by going alone.
func TestTheAskingGoesOnAfterSeveral(t *testing.T) {
	t.Parallel()
	l := open(&desk{}, nil)
	_, alone, _, _ := l.Join(ask{1, 0}, false)
	for key := range 3 {
		if _, _, start, err := l.Join(ask{2 + key, 0}, false); start || err != nil {
			t.Fatalf("Join = %v, %v, want it to wait", start, err)
		}
	}
	l.Settle(alone, []ask{{}}, nil)
	several := l.Take()
	if more := l.Settle(several, several.Questions, nil); !more {
		t.Error("the asking is over, although they are about to come again")
	}
	if _, first, start, err := l.Join(ask{2, 1}, false); first != nil || start || err != nil {
		t.Errorf("the first to come again has %v, %v, %v, want it to wait", first, start, err)
	}
	one := l.Take()
	if more := l.Settle(one, one.Questions, nil); more {
		t.Error("the asking goes on after one, and nobody waits")
	}
	if _, next, _, err := l.Join(ask{3, 1}, false); next == nil || err != nil {
		t.Errorf("the next one has %v, %v, want to ask by itself", next, err)
	}
}

func TestOneKeyIsInOneBatchAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) { c.Flushers = 4 })
		wait := crowd(t.Context(), l, ask{1, 0}, ask{1, 1}, ask{2, 2}, ask{1, 3})
		if got := fmt.Sprint(d.seen()); got != "[[{1 0}] [{2 2}]]" {
			t.Errorf("under way are %s, want key 1 once and key 2", got)
		}
		close(d.gate)
		answers, errs := wait()
		for i := range answers {
			if errs[i] != nil || answers[i].who != i {
				t.Errorf("caller %d was answered %v, %v: each has its own answer", i, answers[i], errs[i])
			}
		}
		if got := fmt.Sprint(d.seen()[2:]); got != "[[{1 1}] [{1 3}]]" {
			t.Errorf("then came %s, want the others of key 1 one after the other", got)
		}
	})
}

func TestReadersOfOneKeyShareOneAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) { c.Shared = true })
		wait := crowd(t.Context(), l, ask{1, 0}, ask{2, 1}, ask{1, 2}, ask{2, 3}, ask{1, 4})
		close(d.gate)
		answers, errs := wait()
		for i, key := range []int{1, 2, 1, 2, 1} {
			if errs[i] != nil || answers[i].key != key {
				t.Errorf("caller %d was answered %v, %v, want key %d", i, answers[i], errs[i], key)
			}
		}
		if got := fmt.Sprint(d.seen()); got != "[[{1 0}] [{1 2} {2 1}]]" {
			t.Errorf("asked %s, want each key of a batch once", got)
		}
	})
}

func TestWhoGivesUpInTimeIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, nil)
		first := crowd(t.Context(), l, ask{1, 0})
		ctx, cancel := context.WithCancel(t.Context())
		gone := crowd(ctx, l, ask{2, 1})
		stays := crowd(t.Context(), l, ask{3, 2})
		cancel()
		if _, errs := gone(); !errors.Is(errs[0], lane.ErrNotSent) || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("who gave up was told %v, want ErrNotSent and why", errs[0])
		}
		close(d.gate)
		first()
		if answers, errs := stays(); errs[0] != nil || answers[0].who != 2 {
			t.Errorf("its neighbour was answered %v, %v", answers[0], errs[0])
		}
		if got := fmt.Sprint(d.seen()); got != "[[{1 0}] [{3 2}]]" {
			t.Errorf("asked %s, want nothing of who gave up", got)
		}
	})
}

func TestWhoGivesUpTooLateDoesNotDisturbTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, nil)
		first := crowd(t.Context(), l, ask{1, 0})
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := crowd(ctx, l, ask{2, 1}), crowd(t.Context(), l, ask{3, 2})
		d.gate <- struct{}{} // the first: the two others are asked for now
		first()
		synctest.Wait()
		cancel()
		if _, errs := gone(); errors.Is(errs[0], lane.ErrNotSent) || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("who gave up was told %v, want only that its context ended", errs[0])
		}
		close(d.gate)
		if answers, errs := stays(); errs[0] != nil || answers[0].who != 2 {
			t.Errorf("its neighbour was answered %v, %v", answers[0], errs[0])
		}
		if err := l.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestWhatFailsIsToldToAllOfItsBatchOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		d := &desk{gate: make(chan struct{})}
		d.fail = func(asks []ask) error {
			if slices.ContainsFunc(asks, func(a ask) bool { return a.key == 2 }) {
				return broken
			}
			return nil
		}
		l := open(d, nil)
		first, batch := crowd(t.Context(), l, ask{1, 0}), crowd(t.Context(), l, ask{2, 1}, ask{3, 2})
		close(d.gate)
		if _, errs := first(); errs[0] != nil {
			t.Errorf("the batch before: %v", errs[0])
		}
		if _, errs := batch(); !errors.Is(errs[0], broken) || !errors.Is(errs[1], broken) {
			t.Errorf("the batch was told %v", errs)
		}
		if got, err := l.Do(t.Context(), ask{4, 3}, false); err != nil || got.who != 3 {
			t.Errorf("who came after was answered %v, %v", got, err)
		}
	})
}

func TestAFullLaneRefusesAllButThoseWhoMust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) { c.MaxWaiting = 2 })
		wait := crowd(t.Context(), l, ask{1, 0}, ask{2, 1}, ask{3, 2})
		if _, err := l.Do(t.Context(), ask{4, 3}, false); !errors.Is(err, lane.ErrFull) {
			t.Errorf("the third who would wait was told %v, want ErrFull", err)
		}
		var must sync.WaitGroup
		must.Go(func() {
			if _, err := l.Do(t.Context(), ask{5, 4}, true); err != nil {
				t.Errorf("who must be heard was told %v", err)
			}
		})
		synctest.Wait()
		close(d.gate)
		must.Wait()
		if _, errs := wait(); errors.Join(errs...) != nil {
			t.Errorf("those who waited were told %v", errs)
		}
	})
}

func TestPanicsAndExitsLeaveNobodyWaiting(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "exit": goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &desk{gate: make(chan struct{})}
				d.fail = func(asks []ask) error {
					if asks[0].key == 2 {
						end()
					}
					return nil
				}
				l := open(d, func(c *lane.Config[int, ask, ask]) { c.MaxBatch = 1 })
				wait := crowd(t.Context(), l, ask{1, 0}, ask{2, 1}, ask{3, 2})
				close(d.gate)
				_, errs := wait()
				if errs[0] != nil || errs[1] == nil || errs[2] != nil {
					t.Errorf("told %v, want an error for the second only", errs)
				}
				if _, err := l.Do(t.Context(), ask{4, 3}, false); err != nil {
					t.Errorf("who came after was told %v", err)
				}
			})
		})
	}
}

func TestAnAskingHasABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) { c.Timeout = time.Second })
		_, errs := crowd(context.Background(), l, ask{1, 0}, ask{2, 1})()
		for i, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("caller %d of a store that is silent was told %v", i, err)
			}
		}
	})
}

// TestAnAnswerThatIsThereCounts: a caller whose context ends while it asks itself
// hears what came of it, every time.
func TestAnAnswerThatIsThereCounts(t *testing.T) {
	t.Parallel()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		l := open(nil, func(c *lane.Config[int, ask, ask]) {
			c.Flush = func(_ context.Context, asks []ask) ([]ask, error) {
				cancel()
				return asks, nil
			}
		})
		if got, err := l.Do(ctx, ask{1, 7}, false); err != nil || got.who != 7 {
			t.Fatalf("Do = %v, %v, want the answer that was there", got, err)
		}
	}
}

// byHand keeps what would go on by itself, until somebody lets it.
type byHand struct{ waits []func() }

func (b *byHand) Go(_ string, f func()) { b.waits = append(b.waits, f) }

func (b *byHand) Wait(_ context.Context, _ any, settled func() bool) {
	for !settled() && len(b.waits) > 0 {
		f := b.waits[0]
		b.waits = b.waits[1:]
		f()
	}
}

// TestWhoStepsSaysWhenOthersGo: nothing happens by itself.
func TestWhoStepsSaysWhenOthersGo(t *testing.T) {
	t.Parallel()
	d, steps := &desk{}, &byHand{}
	l := open(d, func(c *lane.Config[int, ask, ask]) { c.Steps = steps })
	_, alone, _, err := l.Join(ask{1, 0}, false)
	if err != nil || alone == nil {
		t.Fatalf("Join = %v, %v, want a batch of its own", alone, err)
	}
	second, _, _, _ := l.Join(ask{2, 1}, false)
	if more := l.Settle(alone, []ask{{1, 0}}, nil); !more || second.Settled() {
		t.Errorf("after the first: more %v, the second settled %v", more, second.Settled())
	}
	steps.Go("flush", func() { b := l.Take(); l.Settle(b, b.Questions, nil) })
	if len(d.seen()) != 0 || second.Settled() {
		t.Error("it went on by itself")
	}
	if got, err := l.Do(t.Context(), ask{3, 2}, false); err != nil || got.who != 2 || !second.Settled() {
		t.Errorf("Do = %v, %v, and the second is settled: %v", got, err, second.Settled())
	}
}

// TestNobodyWaitsLongerThanTheTimeout, also behind those who have it all: who came
// later than the first is told by then too.
func TestNobodyWaitsLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) {
			c.Timeout, c.Flush = time.Second, func(context.Context, []ask) ([]ask, error) {
				<-d.gate // whatever becomes of its context
				return nil, context.Canceled
			}
		})
		first := crowd(context.Background(), l, ask{1, 0})
		<-time.After(time.Second / 2)
		began := time.Now()
		_, errs := crowd(context.Background(), l, ask{2, 1}, ask{3, 2})()
		for _, err := range errs {
			if !errors.Is(err, lane.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who waited was told %v, want that nothing was sent", err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("told after %v, want the timeout", took)
		}
		close(d.gate)
		first()
		if err := l.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

// TestACrowdHasASecondBatch, and few do not.
func TestACrowdHasASecondBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) { c.Flushers, c.Crowd = 2, 3 })
		few := crowd(t.Context(), l, ask{1, 0}, ask{2, 1}, ask{3, 2})
		if got := len(d.seen()); got != 1 {
			t.Errorf("while two wait %d batches are under way, want one", got)
		}
		more := crowd(t.Context(), l, ask{4, 3}, ask{5, 4}, ask{6, 5}, ask{7, 6})
		if got := fmt.Sprint(d.seen()); got != "[[{1 0}] [{2 1} {3 2} {4 3}]]" {
			t.Errorf("once three wait %s are under way, want a second batch and no third", got)
		}
		close(d.gate)
		few()
		more()
	})
}

// TestQuestionsAreTheFlushsOwnAfterAnError: it may have left them with somebody who
// still sends them.
func TestQuestionsAreTheFlushsOwnAfterAnError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want ask
	}{
		{"answered", nil, ask{2, 2}},
		{"lost", errors.New("lost"), ask{1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := open(&desk{}, nil)
			_, first, _, _ := l.Join(ask{1, 1}, false)
			kept := first.Questions
			l.Settle(first, []ask{{}}, test.err)
			if _, second, _, err := l.Join(ask{2, 2}, false); second == nil || err != nil {
				t.Fatalf("Join = %v, %v, want a batch", second, err)
			}
			if kept[0] != test.want {
				t.Errorf("the first batch's questions hold %v, want %v", kept[0], test.want)
			}
		})
	}
}
