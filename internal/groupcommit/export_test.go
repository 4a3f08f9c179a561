package groupcommit

import "time"

// Sample is the size of a batch and the time that it took.
type Sample struct {
	N       int
	Elapsed time.Duration
}

// LatencyIsHigh reports whether the latency estimate is high after these samples.
func LatencyIsHigh(samples ...Sample) bool {
	var l latency
	for _, s := range samples {
		l.add(s.N, s.Elapsed)
	}
	return l.isHigh()
}
