package semel_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// surviving returns a wire to a store that says what its records survive.
func surviving(f store.Failure, because string) *faulty {
	w := limited(func(c *store.Capabilities) { c.Survives, c.SurvivesBecause = f, because })
	return w
}

// TestRule17StoreThatMayLoseRecords: New accepts a store that survives what the options
// require, and rejects any other with an error that names the setting and the option. A
// store that may lose records is accepted with an alarm that names the setting.
func TestRule17StoreThatMayLoseRecords(t *testing.T) {
	t.Parallel()
	const because = "fsync is off (set on the server's command line)"
	for _, survives := range []store.Failure{store.NoFailure, store.ProcessEnd, store.PowerLoss} {
		for _, required := range []store.Failure{0, store.NoFailure, store.ProcessEnd, store.PowerLoss} {
			w, seen := surviving(survives, because), new(seen)
			e, err := semel.New(w, semel.Options{Survive: required, Observer: seen})
			effective := required
			if required == 0 {
				effective = store.PowerLoss
			}
			if survives < effective {
				wantField(t, err, "Survive")
				for _, part := range []string{because, "store." + survives.String()} {
					if err != nil && !strings.Contains(err.Error(), part) {
						t.Errorf("%v required, %v survived: %q does not name %q", required, survives, err, part)
					}
				}
				continue
			}
			if err != nil {
				t.Errorf("%v required, %v survived: New: %v", required, survives, err)
				continue
			}
			check.NoError(t, e.Close(t.Context()), "Close")
			alarms := 0
			if survives < store.PowerLoss {
				alarms = 1
			}
			wantLossAlarms(t, seen, alarms, because)
		}
	}
}

// wantLossAlarms requires so many events that say that records may be lost, and in the
// last of them the reason.
func wantLossAlarms(t *testing.T, s *seen, n int, because string) {
	t.Helper()
	check.Equal(t, s.count(event.NotDurable), n, "events not_durable of %v", s.all())
	if last := s.last(event.NotDurable); n > 0 && (!last.Alarm() || last.Err == nil || !strings.Contains(last.Err.Error(), because)) {
		t.Errorf("event %+v, want an alarm because of %q", last, because)
	}
}

// TestRule17StoreWithoutADurabilityReport: a store that does not report what it
// survives is rejected with any options, and so is an option that is no Failure.
func TestRule17StoreWithoutADurabilityReport(t *testing.T) {
	t.Parallel()
	for _, unknown := range []store.Failure{0, store.Failover + 1} {
		wantField(t, check.Err(semel.New(surviving(unknown, ""), semel.Options{Survive: store.NoFailure})), "store")
	}
	wantField(t, check.Err(semel.New(surviving(store.PowerLoss, ""), semel.Options{Survive: store.Failover + 1})), "Survive")
}

// TestRule17MemoryStore: the memory store needs the option, and the log shows it as an
// error.
func TestRule17MemoryStore(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	wantField(t, check.Err(semel.New(mem, semel.Options{})), "Survive")
	var log strings.Builder
	e, err := semel.New(mem, semel.Options{Survive: store.NoFailure, Observer: event.Slog(slog.New(slog.NewTextHandler(&log, nil)))})
	check.Require(t, err, "New")
	check.NoError(t, e.Close(t.Context()), "Close")
	for _, part := range []string{"level=ERROR", "event=not_durable", "NoFailure", "memory"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("log %q does not contain %q", log.String(), part)
		}
	}
}

// TestRule17StoreThatSurvivesLessLater: a sweeper emits the alarm once for each time that
// a setting of the store gets worse, and none while it stays or gets better.
func TestRule17StoreThatSurvivesLessLater(t *testing.T) {
	t.Parallel()
	const because = "table semel_records_p9 is unlogged"
	w, seen := surviving(store.PowerLoss, ""), new(seen)
	now, why := store.PowerLoss, ""
	w.Adjust = func(_ context.Context, c *store.Capabilities) error {
		c.Survives, c.SurvivesBecause = now, why
		return nil
	}
	e, err := semel.New(w, semel.Options{Observer: seen})
	check.Require(t, err, "New")
	sweeper, err := admin.NewSweeper(e, admin.SweeperOptions{})
	check.Require(t, err, "NewSweeper")
	pass := func(f store.Failure, reason string, alarms int) {
		t.Helper()
		now, why = f, reason
		check.NoError(t, sweeper.Pass(t.Context()), "Pass")
		wantLossAlarms(t, seen, alarms, because)
	}
	pass(store.PowerLoss, "", 0)
	pass(store.ProcessEnd, because, 1)
	pass(store.ProcessEnd, because, 1)
	pass(store.NoFailure, because, 2)
	pass(store.PowerLoss, "", 2)
	pass(store.NoFailure, because, 3)
	w.Adjust = func(context.Context, *store.Capabilities) error { return errCut }
	check.ErrorIs(t, sweeper.Pass(t.Context()), semel.ErrUnavailable, "Pass")
	check.NoError(t, e.Close(t.Context()), "Close")
}
