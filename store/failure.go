package store

// Failure is a kind of failure that a store's records can survive. A greater one
// includes the smaller ones: a store that survives PowerLoss survives ProcessEnd.
// A store survives a failure if the failure takes back no change that the store
// reported as applied, no Committed, and no final state that a caller has read.
//
// The zero value is none of them. The engine rejects a store that leaves
// [Capabilities].Survives at zero, because it does not say what it survives.
type Failure uint8

const (
	// NoFailure: the end of the store's process may lose records (the memory store;
	// PostgreSQL with synchronous_commit off or an unlogged table).
	NoFailure Failure = iota + 1
	// ProcessEnd: a killed process loses nothing, but a power loss or a crash of the
	// operating system may (PostgreSQL with fsync off; SQLite with synchronous OFF,
	// or NORMAL in WAL mode).
	ProcessEnd
	// PowerLoss: each change is on disk before it is reported as applied.
	PowerLoss
	// Failover: each change is on the disks of enough servers before it is reported
	// as applied or shown, so that the server that takes over after the loss of one
	// has it too.
	Failover
)

// String returns the failure's name.
func (f Failure) String() string {
	switch f {
	case NoFailure:
		return "NoFailure"
	case ProcessEnd:
		return "ProcessEnd"
	case PowerLoss:
		return "PowerLoss"
	case Failover:
		return "Failover"
	default:
		return "Failure(?)"
	}
}
