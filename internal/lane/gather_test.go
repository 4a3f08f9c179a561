package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel/internal/lane"
)

// gathering is a desk that lets others join what it is asked, once it is told to.
type gathering struct {
	desk

	start chan struct{}
	fails func() error
}

func (g *gathering) gather(_ context.Context, asks []ask, more func() []ask) ([]ask, error) {
	all := slices.Clone(asks)
	<-g.start
	for joined := more(); len(joined) > 0; joined = more() {
		all = append(all, joined...)
	}
	g.mu.Lock()
	g.batches = append(g.batches, all)
	g.mu.Unlock()
	if g.fails != nil {
		return nil, g.fails()
	}
	return all, nil
}

// expecting opens a lane with a batch under way of the keys 11 to 14, which waits to be
// told to go on, after eleven were inside at a time.
func (g *gathering) expecting(t *testing.T, most int) (*lane.Lane[int, ask, ask], func() ([]ask, []error)) {
	t.Helper()
	g.gate, g.start = make(chan struct{}), make(chan struct{})
	l := open(&g.desk, func(c *lane.Config[int, ask, ask]) { c.Gather, c.MaxBatch = g.gather, most })
	before := crowd(t.Context(), l, ask{0, 0}, ask{1, 0}, ask{2, 0}, ask{3, 0}, ask{4, 0}, ask{5, 0}, ask{6, 0}, ask{7, 0})
	g.gate <- struct{}{} // the first went alone
	synctest.Wait()
	first := crowd(t.Context(), l, ask{11, 0}, ask{12, 0}, ask{13, 0}, ask{14, 0})
	g.gate <- struct{}{}
	before()
	synctest.Wait()
	g.mu.Lock()
	g.batches = nil
	g.mu.Unlock()
	return l, first
}

func TestWhoComesMeanwhileJoins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gathering
		l, first := g.expecting(t, 100)
		joining := crowd(t.Context(), l, ask{16, 1}, ask{11, 2}, ask{15, 3})
		close(g.start)
		first()
		answers, errs := joining()
		for i, want := range []ask{{16, 1}, {11, 2}, {15, 3}} {
			if answers[i] != want || errs[i] != nil {
				t.Errorf("who asked %v was told %v, %v", want, answers[i], errs[i])
			}
		}
		// A key that is on its way already is not asked for beside itself.
		if got := fmt.Sprint(g.seen()); got != "[[{11 0} {12 0} {13 0} {14 0} {16 1} {15 3}] [{11 2}]]" {
			t.Errorf("asked %v, want who came meanwhile in the batch that was on its way", got)
		}
	})
}

// TestNoMoreJoinThanWereExpected, or the first of a batch would wait for as long as others
// come.
func TestNoMoreJoinThanWereExpected(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ most, want int }{{100, 11}, {9, 9}} {
		synctest.Test(t, func(t *testing.T) {
			var g gathering
			l, first := g.expecting(t, test.most)
			var asks []ask
			for key := 21; key <= 40; key++ {
				asks = append(asks, ask{key, 0})
			}
			others := crowd(t.Context(), l, asks...)
			close(g.start)
			first()
			others()
			if got := len(g.seen()[0]); got != test.want {
				t.Errorf("a batch of at most %d has grown to %d, want %d", test.most, got, test.want)
			}
		})
	}
}

// TestWhoJoinedHearsOfAFailureToo, and of a panic.
func TestWhoJoinedHearsOfAFailureToo(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("down") },
		"panic": func() error { panic("down") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var g gathering
				l, first := g.expecting(t, 100)
				g.fails = func() error { g.fails = nil; return fail() }
				joining := crowd(t.Context(), l, ask{15, 0}, ask{16, 0})
				close(g.start)
				_, errs := first()
				_, joined := joining()
				for i, err := range append(errs, joined...) {
					if err == nil {
						t.Errorf("caller %d heard nothing of it", i)
					}
				}
				close(g.gate) // it may go alone
				if got, err := l.Do(t.Context(), ask{11, 9}, false); err != nil || got.who != 9 {
					t.Errorf("who came after was told %v, %v", got, err)
				}
			})
		})
	}
}
