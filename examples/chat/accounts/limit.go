package accounts

import (
	"sync"
	"time"
)

// maxKeys is how many keys a Limiter remembers.
const maxKeys = 100_000

// Limiter allows a number of requests for each key in a period. All of them may come at
// once; after that, one more is allowed each time period/n has passed. It counts the
// requests of its own process only.
//
// It remembers the 50,000 keys with the latest requests, at least, and 100,000 at most. A
// key that it has forgotten has all of its requests again: a flood of other keys never refuses a
// key that is new.
type Limiter struct {
	period, each time.Duration

	mu sync.Mutex
	// recent and older map a key to the time at which it has all of its requests again. A key
	// that is used moves to recent. When recent is half of maxKeys, it replaces older.
	recent, older map[string]time.Time
}

// NewLimiter returns a limiter of n requests in a period. With n = 0 there is no limit.
func NewLimiter(n int, period time.Duration) *Limiter {
	l := &Limiter{period: period, recent: make(map[string]time.Time)}
	if n > 0 {
		l.each = period / time.Duration(n)
	}
	return l
}

// Allow reports whether a request may come now, and if not, how long to wait.
func (l *Limiter) Allow(key string, now time.Time) (after time.Duration, ok bool) {
	if l.each == 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.recent[key]
	if !known {
		full = l.older[key]
		if len(l.recent) >= maxKeys/2 {
			l.recent, l.older = make(map[string]time.Time), l.recent
		}
	}
	if full.Before(now) {
		full = now
	}
	after = full.Add(l.each).Sub(now) - l.period
	if ok = after <= 0; ok {
		after, full = 0, full.Add(l.each)
	}
	l.recent[key] = full
	return after, ok
}
