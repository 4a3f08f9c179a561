package task

import "time"

// Schedule defines the ticks of a [Periodic]. The schedules of the library
// robfig/cron implement it.
type Schedule interface {
	// Next returns the first tick after t, or the zero time if there is none.
	// It must return the same in every process. It is called with times in UTC,
	// so a schedule without its own time zone is in UTC on every machine.
	Next(t time.Time) time.Time
}

// Every returns a schedule with a tick every d, counted from the beginning of
// 1970 in UTC, so that all processes have the same ticks. If d is zero or
// negative, the schedule has no ticks.
func Every(d time.Duration) Schedule { return intervalSchedule(d) }

type intervalSchedule time.Duration

// Next implements Schedule. It works for the years 1678 to 2262, in which the
// nanoseconds since 1970 fit into 64 bits.
func (d intervalSchedule) Next(t time.Time) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	into := t.UnixNano() % int64(d)
	if into < 0 {
		into += int64(d)
	}
	return time.Unix(0, t.UnixNano()-into+int64(d)).In(t.Location())
}
