package etcd

import "time"

// Advance moves the clock of the store.
func (s *Store) Advance(d time.Duration) {
	clock := s.clock
	s.clock = func() int64 { return clock() + d.Microseconds() }
}
