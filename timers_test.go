package semel_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// Every attempt beats at its own interval, however many run that have others, and
// those that have ended do not.
func TestEachLeaseIsRenewedAtItsOwnInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		const each = 20
		beats := []time.Duration{time.Hour, time.Second, 7 * time.Second, time.Minute}
		var run []*semel.Attempt
		for n := range each {
			for _, beat := range beats {
				op := plain("every-"+beat.String(), semel.OperationOptions[string]{Lease: 3 * beat, Heartbeat: beat})
				for _, ends := range []bool{true, false} {
					a, _, err := adapter.Begin(t.Context(), p, op.Call(me, strconv.Itoa(n)+strconv.FormatBool(ends), "in"))
					check.Require(t, err, "Begin")
					if !ends {
						run = append(run, a)
					} else if _, err := a.End("v", nil); err != nil {
						t.Fatalf("End: %v", err)
					}
				}
			}
			pass(time.Millisecond)
		}
		const long = 2*time.Hour + 500*time.Millisecond
		pass(long)
		got := make(map[string]int)
		for _, c := range p.faults.Changes() {
			if c.If == c.To.Token && c.To.State == store.InProgress {
				got[c.To.Operation]++
			}
		}
		for _, beat := range beats {
			if name, want := "every-"+beat.String(), each*int(long/beat); got[name] != want {
				t.Errorf("%d heartbeats at intervals of %v, want %d", got[name], beat, want)
			}
		}
		for _, a := range run {
			if err := a.Context().Err(); err != nil {
				t.Errorf("attempt of %s: %v, want it to run", a.Call().Operation(), err)
			}
			a.Abandon()
		}
	})
}
