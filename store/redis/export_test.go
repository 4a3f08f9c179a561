package redis

import "time"

// Prefix returns the prefix of the store's keys.
func (s *Store) Prefix() string { return s.options.Prefix }

// Library returns the name of the library of functions.
func (s *Store) Library() string { return s.library.name }

// SetReplicaTimeout changes how long s waits for the replicas.
func (s *Store) SetReplicaTimeout(d time.Duration) { s.options.ReplicaTimeout = d }
