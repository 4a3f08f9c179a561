package sqlite

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

const (
	// patience bounds the waiting for the right to write.
	patience = 2 * time.Second
	// commitBound is how long a COMMIT, or a statement that is one, may take before
	// its caller is told that the outcome is unknown. A commit can hold a checkpoint
	// of the whole log.
	commitBound = 10 * time.Second

	maxOutcome = 1 << 20
	maxBatch   = 1000
)

var (
	_ store.TxStore[*sql.Tx] = (*Store)(nil)
	_ store.Auditor          = (*Store)(nil)
	_ store.Counter          = (*Store)(nil)
	_ store.Dequeuer         = (*Store)(nil)
	_ store.BatchJoiner      = (*Store)(nil)
)

// Store keeps records in a SQLite database. Its methods may be called
// concurrently; one at a time writes, and readers go on meanwhile.
type Store struct {
	db *sql.DB
	// gate holds the process's one right to write. It is taken before a
	// connection is, so that those who wait hold none.
	gate chan struct{}

	preparing sync.Mutex
	prepared  atomic.Pointer[[verbs]*sql.Stmt]

	patience    time.Duration
	commitBound time.Duration
}

// New returns a store of the tables in db, which migrate.SQLite makes. It does
// not use db yet: an error of the database is told by the first call. The
// database stays the caller's, who closes it when the store is not used any
// more. Records survive a power loss only if db's connections have synchronous FULL, as
// those of [Open] do; the engine rejects other settings unless its options accept the
// loss. Transactions of db are begun by BeginTx:
// into one that was begun as text, on a connection that is then given back, the store
// would write without knowing.
//
// db needs at least two connections (SetMaxOpenConns): with one, a function that reads by
// db within its transaction waits for itself for ever, which Semel cannot see, and other
// calls wait until they are told semel.ErrUnavailable.
func New(db *sql.DB) *Store {
	return &Store{
		db: db, gate: make(chan struct{}, 1), patience: patience, commitBound: commitBound,
	}
}
