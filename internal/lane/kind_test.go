package lane_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel/internal/lane"
)

// kinds opens a lane to d whose questions are of as many kinds as they have askers, and
// returns how many of each kind went together, batch by batch, when those of asks wait
// behind one that is under way.
func kinds(t *testing.T, flushers int, first ask, asks []ask) [][]int {
	t.Helper()
	d := &desk{gate: make(chan struct{})}
	l := open(d, func(c *lane.Config[int, ask, ask]) {
		c.Kind, c.Flushers, c.Crowd = func(a *ask) int { return a.who }, flushers, len(asks)
	})
	wait := crowd(t.Context(), l, append([]ask{first}, asks...)...)
	close(d.gate)
	answers, errs := wait()
	for i, a := range append([]ask{first}, asks...) {
		if answers[i] != a || errs[i] != nil {
			t.Errorf("asked %v, was answered %v, %v", a, answers[i], errs[i])
		}
	}
	var all [][]int
	for _, b := range d.seen()[1:] {
		n := make([]int, 2)
		for _, a := range b {
			n[a.who]++
		}
		all = append(all, n)
	}
	return all
}

// of is n questions of kind who, about keys from key on.
func of(who, key, n int) (asks []ask) {
	for i := range n {
		asks = append(asks, ask{key + i, who})
	}
	return asks
}

func TestABatchIsOfOneKindWhereThatLeavesItLarge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		asks []ask
		want [][]int
	}{
		{"half of them", slices.Concat(of(1, 100, 10), of(0, 200, 10)), [][]int{{0, 10}, {10, 0}}},
		{"the first and others who came later", slices.Concat(of(1, 100, 1), of(0, 200, 10), of(1, 300, 10)), [][]int{{0, 11}, {10, 0}}},
		{"a third of them", slices.Concat(of(1, 100, 6), of(0, 200, 12)), [][]int{{0, 6}, {12, 0}}},
		{"fewer than a third", slices.Concat(of(1, 100, 6), of(0, 200, 13)), [][]int{{13, 6}}},
		{"few", slices.Concat(of(1, 100, 8), of(0, 200, 8)), [][]int{{8, 8}}},
		{"all", of(1, 100, 20), [][]int{{0, 20}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if got := kinds(t, 1, ask{1, 0}, test.asks); !slices.EqualFunc(got, test.want, slices.Equal) {
					t.Errorf("went together, of each kind: %v, want %v", got, test.want)
				}
			})
		})
	}
}

// TestNobodyIsLeftBehindTwice, however many of another kind come.
func TestNobodyIsLeftBehindTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{gate: make(chan struct{})}
		l := open(d, func(c *lane.Config[int, ask, ask]) { c.Kind = func(a *ask) int { return a.who } })
		waits := []func() ([]ask, []error){crowd(t.Context(), l, ask{1, 0})}
		come := func(asks ...ask) { waits = append(waits, crowd(t.Context(), l, asks...)) }
		come(slices.Concat(of(0, 100, 20), of(1, 200, 2))...)
		d.gate <- struct{}{} // the first, and those who were like the first of the others go
		synctest.Wait()
		come(of(0, 300, 100)...)
		close(d.gate)
		for _, wait := range waits {
			wait()
		}
		got := d.seen()
		if len(got) < 3 || !slices.Contains(got[2], ask{200, 1}) || !slices.Contains(got[2], ask{201, 1}) {
			t.Errorf("who was left behind by the second batch is not in the third: %v", got)
		}
	})
}

// TestAKindThatCannotGoIsNotInTheWay: its keys are in a batch that is under way.
func TestAKindThatCannotGoIsNotInTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, free := make(chan struct{}), false
		d := &desk{}
		l := open(d, func(c *lane.Config[int, ask, ask]) {
			c.Kind, c.Flushers, c.Crowd = func(a *ask) int { return a.who }, 2, 19
			c.Flush = func(ctx context.Context, asks []ask) ([]ask, error) {
				if !free {
					free = true
					<-gate
				}
				return d.flush(ctx, asks)
			}
		})
		blocked := crowd(t.Context(), l, slices.Repeat([]ask{{1, 0}}, 11)...)
		others := crowd(t.Context(), l, of(1, 100, 9)...)
		if got := d.seen(); len(got) != 1 || len(got[0]) != 9 {
			t.Errorf("while those of one key wait for the first of them, went %v, want the nine others", got)
		}
		close(gate)
		blocked()
		others()
	})
}

// TestManyOfOneKeyLeaveNobodyBehindTwice: they go one by one, and the first of them is
// always the one who has waited longest.
func TestManyOfOneKeyLeaveNobodyBehindTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := kinds(t, 1, ask{1, 0}, slices.Concat(slices.Repeat([]ask{{100, 0}}, 40), of(1, 200, 20)))
		if len(left) < 2 || left[0][1]+left[1][1] != 20 {
			t.Errorf("went together, of each kind: %v, want those of the other kind in the second batch", left)
		}
	})
}

// TestWhoCannotGoDoesNotSayWhoGoes: its key is in a batch that is under way.
func TestWhoCannotGoDoesNotSayWhoGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		d := &desk{}
		l := open(d, func(c *lane.Config[int, ask, ask]) {
			c.Kind, c.Flushers, c.Crowd = func(a *ask) int { return a.who }, 2, 24
			c.Flush = func(ctx context.Context, asks []ask) ([]ask, error) {
				if asks[0].key == 1 {
					<-gate
				}
				return d.flush(ctx, asks)
			}
		})
		blocked := crowd(t.Context(), l, ask{1, 0}, ask{1, 0})
		others := crowd(t.Context(), l, slices.Concat(of(1, 200, 10), of(0, 100, 13))...)
		if got := d.seen(); len(got) == 0 || got[0][0].who != 1 {
			t.Errorf("while the first cannot go, went %v, want the kind of who has waited longest of the others", got)
		}
		close(gate)
		blocked()
		others()
	})
}
