package postgres

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
)

const (
	// commitBound is how long the end of a transaction may take before its
	// caller is told that the outcome is unknown.
	commitBound = 10 * time.Second

	maxOutcome = 1 << 20
	maxBatch   = 1000
)

var (
	_ store.TxStore[pgx.Tx] = (*Store)(nil)
	_ store.Auditor         = (*Store)(nil)
	_ store.Counter         = (*Store)(nil)
	_ store.Dequeuer        = (*Store)(nil)

	_ store.Batcher[*pgx.Batch] = (*Store)(nil)
)

// Store keeps records in a PostgreSQL database. Its methods may be called
// concurrently.
type Store struct {
	pool *pgxpool.Pool
	// sessions are the store's own, for what needs no transaction of a handler.
	sessions *sessions

	level pgx.TxIsoLevel
	texts texts
	found atomic.Pointer[tables]
	// gate lets in one Atomic fewer than the pool has connections, so that one is left
	// for what handlers ask the store or the pool beside their transactions.
	gate *admission
	// noScans says that transactions were last seen to begin with enable_seqscan off.
	noScans atomic.Bool
	// quick says that the statements of a transaction may go past the driver's batches.
	quick bool
	// asTexts says that all values come as texts.
	asTexts bool

	commitBound    time.Duration
	keptFor        time.Duration // keptFor, but in tests
	statementBound time.Duration // zero: the server's own
}

// New returns a store of the tables that migrate.Postgres makes in the database
// of pool. It does not use pool yet: an error of the database is told by the
// first call. The pool stays the caller's, who closes it when the store is not
// used any more. Of its settings, the store uses the number of connections, of
// which at most all but one run transactions of Atomic at a time, those of other stores of
// the pool counted as well, and the query mode, which behind PgBouncer must not be the default; see the package's
// comment. It fails when an option cannot be, and when the pool has only one
// connection. Calls that run no transaction of the caller's wait for a connection for five
// seconds at most.
func New(pool *pgxpool.Pool, o Options) (*Store, error) {
	if pool == nil {
		return nil, errors.New("semel/postgres: the pool is nil")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	config := pool.Config()
	conns := int(config.MaxConns)
	if conns < 2 {
		return nil, fmt.Errorf("semel/postgres: MaxConns of the pool is %d: a transaction takes one connection, and its leader's heartbeats and look-ups another", conns)
	}
	mode := config.ConnConfig.DefaultQueryExecMode
	return &Store{
		asTexts: mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol,
		pool:    pool, sessions: sessionsOf(pool, config, o.MaxSessions), level: o.Isolation, texts: newTexts(&o),
		quick: usesPrepared(config), gate: admissionOf(pool, conns), commitBound: commitBound, keptFor: keptFor, statementBound: max(0, o.StatementTimeout),
	}, nil
}
