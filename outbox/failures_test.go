package outbox_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	writer := newEngine(t, d.store, semel.Options{})
	d.write(writer, about("bad", "bad"))
	for n := 1; n <= o.MaxFailures+1; n++ {
		e := newEngine(t, d.store, semel.Options{Observer: alarms})
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
	d.scan(&n, `SELECT coalesce(max(failures), 0) FROM semel_outbox`)
	return n
}

// TestRelaysKilledByFailures: each process is killed after a failure was counted.
func TestRelaysKilledByFailures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	d := onSQLite(t)
	e := newEngine(t, d.store, semel.Options{})
	d.write(e, about("bad", "bad"))
	for n := 1; n <= childMaxFailures+1; n++ {
		cmd := exec.CommandContext(t.Context(), check.Must(os.Executable())(t))
		cmd.Env = append(os.Environ(), childVariable+"="+d.file())
		lines := bufio.NewScanner(check.Must(cmd.StdoutPipe())(t))
		check.Require(t, cmd.Start())
		body := fmt.Sprintf("good-%d", n)
		d.write(e, about(otherLane("bad"), body))
		for seen := []string(nil); !slices.Contains(seen, body) && lines.Scan(); seen = append(seen, lines.Text()) {
		}
		realtest.Poll(t, "the failure to be counted", func() bool { return d.failures() == n || d.rows("semel_outbox_parked") == 1 })
		check.Require(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
	if p := check.Must(outbox.ParkedOf(t.Context(), e, 10))(t); len(p) != 1 || p[0].Failures != childMaxFailures+1 {
		t.Errorf("the parked aggregates are %+v, want one after %d failures", p, childMaxFailures+1)
	}
}
