package semel_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestEachLeaseIsRenewedAtItsOwnInterval: leases of other lengths, and attempts that end, do not
// change the interval at which the lease of an attempt is renewed.
func TestEachLeaseIsRenewedAtItsOwnInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		const each = 20
		beats := []time.Duration{time.Hour, time.Second, 7 * time.Second, time.Minute}
		run := []*semel.Attempt{begin(t, p, plain("long", semel.OperationOptions[string]{Lease: math.MaxInt64}).Call(me, "k", "in"))}
		for n := range each {
			for _, beat := range beats {
				op := plain("every-"+beat.String(), semel.OperationOptions[string]{Lease: 3 * beat, Heartbeat: beat})
				run = append(run, begin(t, p, op.Call(me, fmt.Sprint(n), "in")))
				answerOf(begin(t, p, op.Call(me, fmt.Sprint(n, " ends"), "in")).End("v", nil)).want(t, "v", false)
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
			check.Equal(t, got["every-"+beat.String()], each*int(long/beat), "heartbeats at intervals of %v", beat)
		}
		wantAlive(t, run...)
		for _, a := range run {
			a.Abandon()
		}
	})
}
