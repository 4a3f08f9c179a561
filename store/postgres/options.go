package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Defaults of Options.
const (
	DefaultIdleInTransaction = 30 * time.Second
	DefaultLockTimeout       = 10 * time.Second
	DefaultStatementTimeout  = 30 * time.Second
	DefaultMaxSessions       = 4
)

// Options say how a [Store] runs transactions. The zero value is good.
type Options struct {
	// Isolation is the level of Atomic's transactions: read committed, which is
	// the default, repeatable read, or serializable. The levels above read
	// committed are for inline transactions only, which take the right to their
	// record; the finish of a leased attempt is refused with ErrIsolation. A
	// transaction that PostgreSQL gives up in favour of others fails with
	// store.ErrConflict.
	Isolation pgx.TxIsoLevel

	// What the server allows Atomic's transactions, so that a process that has
	// stopped does not hold its locks for ever: how long one may wait for its
	// next statement, how long a statement may wait for a lock, and how long a
	// statement may take. Zero means the default: 30, 10 and 30 seconds. Less
	// than zero leaves it to the server's own settings.
	IdleInTransaction time.Duration
	LockTimeout       time.Duration
	StatementTimeout  time.Duration

	// MaxSessions is how many connections the store opens beside the pool's, with
	// the pool's configuration, while there is much to record: they need to be told
	// less before each statement. Zero means the default of 4, for two batches of an
	// engine, and for its reads or for what its worker claims and ends; less than
	// zero means none. Where the server, the database or the role has a limit of
	// connections, they count beside the pool's, and none is opened that would leave
	// too few for the pool. They are closed when they have not been used for a
	// second, or for two, and when they are older than the pool's MaxConnLifetime;
	// the pool's Reset does not reach them. There are none behind a pooler, none in a
	// query mode other than the default, and none if the pool has a PrepareConn, a
	// BeforeAcquire, an AfterRelease or a BeforeClose.
	MaxSessions int
}

func (o *Options) check() error {
	if o.Isolation == "" {
		o.Isolation = pgx.ReadCommitted
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if !slices.Contains([]pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}, o.Isolation) {
		return fmt.Errorf("semel/postgres: Options.Isolation: there is no level %q for a store", o.Isolation)
	}
	for _, bound := range []struct {
		of    *time.Duration
		first time.Duration
	}{
		{&o.IdleInTransaction, DefaultIdleInTransaction},
		{&o.LockTimeout, DefaultLockTimeout},
		{&o.StatementTimeout, DefaultStatementTimeout},
	} {
		if *bound.of == 0 {
			*bound.of = bound.first
		}
	}
	return nil
}

// batchBounds are the settings of a transaction whose statements are sent at once,
// which costs one the more settings it has: it waits for nobody in between, and a
// statement's time bounds its waiting for a lock, too.
func (o *Options) batchBounds() []setting {
	of := *o
	of.IdleInTransaction = -1
	if of.StatementTimeout > 0 && of.LockTimeout == DefaultLockTimeout {
		of.LockTimeout = -1
	}
	return of.bounds()
}

// bounds are the settings of a transaction that somebody else's code runs in.
func (o *Options) bounds() []setting {
	var all []setting
	for _, b := range []struct {
		name string
		of   time.Duration
	}{
		{"idle_in_transaction_session_timeout", o.IdleInTransaction},
		{"lock_timeout", o.LockTimeout},
		{"statement_timeout", o.StatementTimeout},
	} {
		if b.of > 0 {
			all = append(all, setting{b.name, millis(b.of)})
		}
	}
	return all
}
