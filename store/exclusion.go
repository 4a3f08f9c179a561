package store

// Exclusion says which other writers an open transaction excludes.
type Exclusion uint8

const (
	// ExcludesNothing: a change of a record that an open transaction has written or
	// holds may be applied meanwhile, and then makes that transaction fail, at its
	// next statement or at its commit (Galera with connections to several nodes).
	ExcludesNothing Exclusion = iota
	// ExcludesRecord: a change of a record that an open transaction has written or
	// holds is Busy (PostgreSQL, MariaDB).
	ExcludesRecord
	// ExcludesAll: an open Atomic transaction excludes all other writers, so no
	// takeover is possible meanwhile (SQLite).
	ExcludesAll
)

// Clock says with which clock a store compares Due and Expire.
type Clock uint8

const (
	// ServerClock is the clock of one server, or of its successor after a failover.
	ServerClock Clock = iota
	// ClientClocks are the clocks of the processes that use the store. A takeover
	// can come too early, or too late, by the difference of two clocks. The fencing
	// token protects the record all the same.
	ClientClocks
)
