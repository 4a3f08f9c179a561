package task

import "time"

// Schedule says when the ticks of a [Periodic] are. The schedules of the library
// robfig/cron are such.
type Schedule interface {
	// Next returns the first tick after t, or the zero time when there is none. It
	// must say the same in every process: it is asked with times in UTC, so one
	// without a zone of its own means UTC wherever it runs.
	Next(t time.Time) time.Time
}

// Every is the schedule of a tick each d, counted from the beginning of 1970 in
// UTC, so that all processes have the same ticks. A d of zero or less has none.
func Every(d time.Duration) Schedule { return every(d) }

type every time.Duration

// Next implements Schedule, for the years in which nanoseconds since 1970 fit into
// 64 bits: 1678 to 2262.
func (d every) Next(t time.Time) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	into := t.UnixNano() % int64(d)
	if into < 0 {
		into += int64(d)
	}
	return time.Unix(0, t.UnixNano()-into+int64(d)).In(t.Location())
}
