package mysql

// SendOneByOne lets the stores of s's database send the steps of their scripts one by
// one, as MySQL needs it.
func (s *Store) SendOneByOne() {
	s.server.known.Store(&dialect{maxBytes: maxOutcome})
	s.lanes.SetMaxIdleConns(0) // their settings are MariaDB's
	s.lanes.SetMaxIdleConns(maxOwnConns)
}
