package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/sqlname"
)

// Defaults of Options.
const (
	DefaultIdleInTransaction = 30 * time.Second
	DefaultLockTimeout       = 10 * time.Second
	DefaultStatementTimeout  = 30 * time.Second
	DefaultMaxSessions       = 4
)

// Options define how a [Store] runs transactions. The zero value has good defaults.
type Options struct {
	// Schema and Prefix name the tables, as in the options of migrate/postgres. Empty
	// means the schema in which the search_path of the pool's connections finds them,
	// and semel_.
	Schema, Prefix string

	// Isolation is the isolation level of Atomic's transactions: read committed,
	// which is the default, repeatable read, or serializable. The levels above read
	// committed are for inline transactions only, which take the exclusive right to
	// their record; the end of a leased attempt is refused with ErrIsolation. A
	// transaction that PostgreSQL aborts because of a conflict fails with
	// store.ErrConflict.
	Isolation pgx.TxIsoLevel

	// The server's limits of Atomic's transactions, so that a stopped process does
	// not hold its locks for ever: for the wait for the next statement, for the
	// wait for a lock, and for a statement. Zero means the default: 30, 10 and 30
	// seconds. Negative leaves the server's own settings.
	IdleInTransaction time.Duration
	LockTimeout       time.Duration
	StatementTimeout  time.Duration

	// MaxSessions is the number of connections that the store opens beside the
	// pool's, with the pool's configuration, while there is much to record. They
	// need no settings before each statement. Zero means the default of 4: two
	// for batches of an engine, and two for its reads or its worker; negative means
	// none. They count for connection limits of the server, the database and the
	// role, and none is opened that would leave too few for the pool. They are
	// closed when none was used for one or two seconds, and when they are older than
	// the pool's MaxConnLifetime; the pool's Reset does not affect them. The store
	// opens none behind a pooler, none in a query mode other than the default, and
	// none if the pool has a PrepareConn, a BeforeAcquire, an AfterRelease or a
	// BeforeClose.
	MaxSessions int
}

func (o *Options) check() error {
	if err := sqlname.CheckSchema("semel/postgres: Options.Schema", o.Schema); err != nil {
		return err
	}
	var err error
	if o.Prefix, err = sqlname.Prefix("semel/postgres: Options.Prefix", o.Prefix); err != nil {
		return err
	}
	o.Isolation = cmp.Or(o.Isolation, pgx.ReadCommitted)
	o.MaxSessions = cmp.Or(o.MaxSessions, DefaultMaxSessions)
	if !slices.Contains([]pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}, o.Isolation) {
		return fmt.Errorf("semel/postgres: Options.Isolation: there is no level %q for a store", o.Isolation)
	}
	o.IdleInTransaction = cmp.Or(o.IdleInTransaction, DefaultIdleInTransaction)
	o.LockTimeout = cmp.Or(o.LockTimeout, DefaultLockTimeout)
	o.StatementTimeout = cmp.Or(o.StatementTimeout, DefaultStatementTimeout)
	return nil
}

// bounds returns the settings of a transaction in which a handler runs.
func (o *Options) bounds() []setting {
	return slices.Concat(limit("idle_in_transaction_session_timeout", o.IdleInTransaction),
		limit("lock_timeout", o.LockTimeout), limit("statement_timeout", o.StatementTimeout))
}

func limit(name string, of time.Duration) []setting {
	if of < 0 {
		return nil
	}
	return []setting{{name, millis(of)}}
}
