package task_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may lack time zone data

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// TestCronSchedules: cron schedules use UTC unless they name a zone, on every
// machine, and handle daylight saving time as documented.
func TestCronSchedules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ spec, from, want string }{
		"UTC":                        {"0 3 * * *", "2026-03-28T12:00", "29T03:00 30T03:00 31T03:00"},
		"a zone":                     {"CRON_TZ=Europe/Berlin 0 3 * * *", "2026-06-28T12:00", "29T01:00 30T01:00 01T01:00"},
		"an hour that is left out":   {"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-27T12:00", "28T01:30 30T00:30 31T00:30"},
		"an hour that comes twice":   {"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00", "25T00:30 25T01:30 26T01:30"},
		"each half of it":            {"CRON_TZ=Europe/Berlin */30 2 * * *", "2026-10-25T00:00", "25T00:30 25T01:00 25T01:30"},
		"midnight, without a change": {"@daily", "2026-10-24T12:00", "25T00:00 26T00:00 27T00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule, err := cron.ParseStandard(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			var _ task.Schedule = schedule
			at, err := time.Parse("2006-01-02T15:04", tt.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range 3 {
				at = schedule.Next(at)
				got = append(got, at.UTC().Format("02T15:04"))
			}
			if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
				t.Errorf("the ticks differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCronScheduleImplementsSchedule(t *testing.T) {
	t.Parallel()
	schedule, err := cron.ParseStandard("0 3 * * *")
	if err != nil {
		t.Fatal(err)
	}
	op := semel.Define("op", atomicOptions())
	r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
	p := periodic(r, op, func(o *task.PeriodicOptions[input]) { o.Schedule = schedule })
	if added, err := p.Tick(t.Context(), schedule.Next(time.Now().UTC())); !added || err != nil {
		t.Errorf("Tick = %v, %v, want it added", added, err)
	}
}
