package semel_test

import (
	"math"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func TestVeryLongLeaseDoesNotDelayOtherHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p := start(t, mem, semel.Options{})
		long := plain("long", semel.OperationOptions[string]{Lease: math.MaxInt64})
		short := plain("short", semel.OperationOptions[string]{Lease: 30 * time.Second})
		var both []*semel.Attempt
		for _, c := range []semel.Call{long.Call(me, "k", "in"), short.Call(me, "k", "in")} {
			a, _, err := adapter.Begin(t.Context(), p, c)
			if err != nil {
				t.Fatal(err)
			}
			both = append(both, a)
		}
		pass(time.Minute)
		answers, err := mem.Get(t.Context(), []store.ID{both[1].Call().ID()})
		if err != nil {
			t.Fatal(err)
		}
		if left := answers[0].Record.Due; left <= 0 {
			t.Errorf("the lease of the other attempt is over since %v: it was not renewed", -left)
		}
		for _, a := range both {
			if a.Context().Err() != nil {
				t.Error("the lease is lost")
			}
			if _, err := a.End("v", nil); err != nil {
				t.Error(err)
			}
		}
	})
}
