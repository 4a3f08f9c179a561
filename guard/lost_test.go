package guard_test

import (
	"strconv"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

func loseReplies[Tx any](t *testing.T, d *domain[Tx]) {
	t.Helper()
	found, proven := 0, 0
	for round := range rounds(51) {
		w := newApart(t, d, round%2 == 0)
		key := strconv.Itoa(round)
		var fault *realtest.Fault
		switch round % 3 {
		case 0:
			fault = d.proxy.EatReply(realtest.Commit())
		case 1:
			fault = d.proxy.CutBefore(realtest.Commit())
		case 2:
			fault = d.proxy.CutAfter(realtest.Commit())
		}
		v, _, err := w.do(t.Context(), key)
		fault.Wait(t)
		n := d.count("effects", key)
		switch {
		case err == nil && n == 1 && v == (receipt{7, key}):
			found++
		case semel.VerdictOf(err) == store.NotCommitted && n == 0:
			proven++
		default:
			t.Errorf("round %d: %+v, %v with %d effects", round, v, err, n)
		}
		w.want(key)
	}
	t.Logf("%d were committed, %d were not", found, proven)
	if found == 0 || proven == 0 {
		t.Error("the rounds do not show both ends")
	}
}
