package outbox_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

// TestFailuresOfManyRelays: each relay sees one failure of an event and ends. The event is
// parked with the failure after MaxFailures, as with one relay.
func TestFailuresOfManyRelays(t *testing.T) {
	t.Parallel()
	onAll(t, suite{failuresOfManyRelays[*sql.Tx], failuresOfManyRelays[pgx.Tx]})
}

func failuresOfManyRelays[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	o := quick
	o.MaxFailures = 3
	alarms, b := newAlarms(), newBroker(t)
	writer := newEngine(t, d.Store, semel.Options{})
	d.write(writer, about("bad", "bad"))
	for n := 1; n <= o.MaxFailures+1; n++ {
		e := newEngine(t, d.Store, semel.Options{Observer: alarms})
		d.write(writer, about(otherLane("bad"), "good"))
		stop := start(t, e, outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
			if m.Aggregate != "bad" {
				return b.Publish(ctx, m)
			}
			realtest.Poll(t, "the broker to confirm another message", func() bool { return d.rows("semel_outbox") == 1 })
			return errRefused
		}), o)
		if n > o.MaxFailures {
			alarms.next(t)
		} else {
			realtest.Poll(t, "the failure to be counted", func() bool { return d.failures() == n })
		}
		stop()
	}
	if p := check.Must(outbox.ParkedOf(t.Context(), writer, 10))(t); len(p) != 1 || p[0].Failures != o.MaxFailures+1 {
		t.Errorf("the parked aggregates are %+v, want one after %d failures", p, o.MaxFailures+1)
	}
	if d.failures() != 0 {
		t.Errorf("%d failures are counted, want none for the relay that publishes after a redrive", d.failures())
	}
	if alarms := alarms.all; len(alarms) != 1 || alarms[0].Kind != event.Parked {
		t.Errorf("the alarms are %v, want one", alarms)
	}
}

// failures returns how often the events in the outbox have failed.
func (d *database[Tx]) failures() (n int) {
	d.t.Helper()
	d.Scan(&n, `SELECT coalesce(max(failures), 0) FROM semel_outbox`)
	return n
}
