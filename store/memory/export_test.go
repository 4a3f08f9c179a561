package memory

// Noted is how many times of expiry are noted, also of what has changed since.
func (s *Store) Noted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expiring.len()
}
