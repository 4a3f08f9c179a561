package sqlite

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/store"
)

const (
	// patience limits the wait for the write lock.
	patience = 2 * time.Second
	// commitBound limits a COMMIT, or a statement that commits by itself. After it
	// the outcome is unknown. A commit can include a checkpoint of the whole log.
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

// Options name the tables.
type Options struct {
	// Prefix begins the names of the tables, as in the options of migrate/sqlite. Empty
	// means semel_.
	Prefix string
}

// Store keeps records in a SQLite database. Its methods may be called concurrently;
// one call writes at a time, and readers do not wait for it.
type Store struct {
	db     *sql.DB
	prefix string
	// invalid is the error of an invalid option, which every call returns.
	invalid error
	// gate holds the process's right to write. It is taken before a connection is,
	// so that waiting callers hold none.
	gate chan struct{}

	preparing sync.Mutex
	prepared  atomic.Pointer[[verbs]*sql.Stmt]

	patience    time.Duration
	commitBound time.Duration
}

// New returns a store of the tables in db, which package migrate/sqlite creates. It does
// not use db yet: the first call returns an error of the database. The caller
// closes db when the store is no longer used. Records survive a power loss only if
// db's connections have synchronous FULL, as those of [Open] do; the engine rejects
// other settings unless its options accept the loss. Begin transactions of db with
// BeginTx. If a transaction is begun by a text statement and its connection goes
// back to the pool, the store would write into it.
//
// db needs at least two connections (SetMaxOpenConns). With one, a function that
// reads with db within its transaction waits for itself for ever, which Semel
// cannot detect, and other calls wait until they get semel.ErrUnavailable.
//
// If an option is invalid, every call of the store fails, and so does semel.New.
func New(db *sql.DB, o Options) *Store {
	prefix, err := sqlname.Prefix("semel/sqlite: Options.Prefix", o.Prefix)
	return &Store{
		db: db, prefix: prefix, invalid: err, gate: make(chan struct{}, 1), patience: patience, commitBound: commitBound,
	}
}
