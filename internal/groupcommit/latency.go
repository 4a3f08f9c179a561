package groupcommit

import "time"

const (
	// highLatency is the time of a small batch over a slow network or disk. The work
	// of the database itself takes a fraction of it.
	highLatency = time.Millisecond
	// maxSample is the largest batch whose time measures the latency. Larger batches
	// take as long as the work in them.
	maxSample = 16
	// maxGrowth limits how fast the estimate grows: by at most one part in maxGrowth
	// per sample.
	maxGrowth = 16
)

// latency estimates the shortest time of recent small batches. Failed batches do not
// count.
type latency time.Duration

// add records that a batch of n items took elapsed. A fast batch replaces the
// estimate. A slow batch raises it a little only, because other load may have slowed
// it.
func (l *latency) add(n int, elapsed time.Duration) {
	switch was := time.Duration(*l); {
	case n > maxSample || elapsed == 0:
	case was == 0 || elapsed < was:
		*l = latency(elapsed)
	default:
		*l += latency(min(elapsed-was, was) / maxGrowth)
	}
}

func (l latency) isHigh() bool { return time.Duration(l) >= highLatency }
