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
	// commitBound limits the end of a transaction. After it the outcome is unknown.
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
	source source
	// sessions are the store's own connections, for statements outside of handlers'
	// transactions.
	sessions *sessions

	options Options
	texts   texts
	found   atomic.Pointer[tables]
	// gate admits one Atomic fewer than the pool has connections, so that one
	// connection remains for other calls of handlers.
	gate *admission
	// replicated means that commits wait for a standby, so that reads must, too. It is
	// as Capabilities has read it last.
	replicated atomic.Bool

	commitBound    time.Duration
	statementBound time.Duration // zero: the server's own
}

// New returns a store of the tables that package migrate/postgres creates in the database
// of pool. It does not use pool yet: the first call returns an error of the
// database. The caller closes the pool when the store is no longer used. The store
// uses two of the pool's settings: the number of connections, of which transactions
// of Atomic use at most all but one, counted over all stores of the pool; and the
// query mode, which behind PgBouncer must not be the default (see the package's
// documentation). New fails if an option is invalid, or if the pool has only one
// connection. Calls without a transaction of the caller wait at most five seconds
// for a connection.
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
		return nil, fmt.Errorf("semel/postgres: MaxConns of the pool is %d: %s", conns, whyTwo)
	}
	return newStore(pgxSource{pool}, newSessions(pool, config, o.MaxSessions), admissionOf(pool, conns), &o), nil
}

const whyTwo = "a transaction takes one connection, and its leader's heartbeats and look-ups another"

func newStore(from source, own *sessions, gate *admission, o *Options) *Store {
	return &Store{
		source: from, sessions: own, gate: gate, options: *o, texts: newTexts(o),
		commitBound: commitBound, statementBound: max(0, o.StatementTimeout),
	}
}
