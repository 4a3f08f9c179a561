package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/outbox"
)

// TestProbe: events that cannot be published are parked although no other event is confirmed, if the broker
// takes the probe, and are not while it does not.
func TestProbe(t *testing.T) {
	t.Parallel()
	d, alarms, b := onSQLite(t), newAlarms(), newBroker(t)
	e := newEngine(t, d.Store, semel.Options{Observer: alarms})
	b.fail = func(context.Context, outbox.Message) error { return errRefused }
	var up atomic.Bool
	var probes atomic.Int64
	o := quick
	o.MaxFailures = 1
	o.Probe = func(context.Context) error {
		probes.Add(1)
		if up.Load() {
			return nil
		}
		return errRefused
	}
	start(t, e, b, o)
	d.write(e, about("a", "bad"), about("b", "bad"))
	b.until("failures while the broker is down", func(_ []outbox.Message, failures int) bool { return failures > 5 })
	if s := check.Must(outbox.StatsOf(t.Context(), e))(t); s.ParkedAggregates != 0 || probes.Load() == 0 {
		t.Errorf("%d aggregates are parked after %d failed probes", s.ParkedAggregates, probes.Load())
	}
	up.Store(true)
	for range 2 {
		if alarm := alarms.next(t); alarm.Kind != event.Parked {
			t.Errorf("the alarm is %+v, want Parked", alarm)
		}
	}
	if s := check.Must(outbox.StatsOf(t.Context(), e))(t); s.ParkedAggregates != 2 {
		t.Errorf("%d aggregates are parked, want 2", s.ParkedAggregates)
	}
}
