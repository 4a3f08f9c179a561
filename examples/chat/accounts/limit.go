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
type Limiter struct {
	period, each time.Duration

	mu sync.Mutex
	// full is the time at which a key has all of its requests again.
	full map[string]time.Time
}

// NewLimiter returns a limiter of n requests in a period. With n = 0 there is no limit.
func NewLimiter(n int, period time.Duration) *Limiter {
	l := &Limiter{period: period, full: make(map[string]time.Time)}
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
	full, known := l.full[key]
	if !known && len(l.full) >= maxKeys {
		l.forget(now)
		if len(l.full) >= maxKeys {
			return l.each, false
		}
	}
	if full.Before(now) {
		full = now
	}
	full = full.Add(l.each)
	if after := full.Sub(now) - l.period; after > 0 {
		return after, false
	}
	l.full[key] = full
	return 0, true
}

// forget removes the keys that have all of their requests again.
func (l *Limiter) forget(now time.Time) {
	for key, full := range l.full {
		if !full.After(now) {
			delete(l.full, key)
		}
	}
}
