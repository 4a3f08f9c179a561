package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

var _ store.TxStore[*sql.Tx] = (*SQLStore)(nil)

// SQLStore is a [Store] whose transactions are a *sql.Tx, for programs that use
// database/sql, such as those with GORM, ent, bun, sqlx or sqlc. It has the same tables
// and sends the same statements, so that a Store and a SQLStore can use one database at
// the same time.
type SQLStore struct {
	// Store takes connections from the same *sql.DB. It is for what needs no *sql.Tx,
	// such as NewPartitions.
	*Store
}

// NewSQL returns a store of the tables that migrate.Postgres creates in the database of
// db, whose driver must be github.com/jackc/pgx/v5/stdlib, without a wrapper: open it
// with sql.Open("pgx", url), stdlib.OpenDB or stdlib.OpenDBFromPool. A driver that wraps
// it, as otelsql does, is refused by the first call; give pgx a QueryTracer instead.
//
// NewSQL fails if an option is invalid, or if SetMaxOpenConns of db was not called
// before, or with less than two: transactions of Atomic use at most all but one of the
// connections, counted over all stores of db. If db takes its connections from a pool of
// pgx, allow at most one fewer than the pool has, and fewer if others use the pool. The
// store opens no connections of its own: Options.MaxSessions has no effect.
//
// It does not use db yet: the first call returns an error of the database. The caller
// closes db when the store is no longer used.
func NewSQL(db *sql.DB, o Options) (*SQLStore, error) {
	if db == nil {
		return nil, errors.New("semel/postgres: the database is nil")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	switch conns := db.Stats().MaxOpenConnections; conns {
	case 0:
		return nil, errors.New("semel/postgres: the database has no limit of connections: call SetMaxOpenConns before NewSQL")
	case 1:
		return nil, fmt.Errorf("semel/postgres: SetMaxOpenConns of the database is 1: %s", whyTwo)
	default:
		return &SQLStore{newStore(sqlSource{db}, &sessions{}, admissionOf(db, conns), &o)}, nil
	}
}

// Atomic is [Store.Atomic] with a *sql.Tx. Its Commit and Rollback return [ErrEnded] and
// do nothing, so that a deferred Rollback does no harm; after them database/sql refuses
// further statements. The *sql.Tx is not one of db itself: Stmt and StmtContext do not
// accept statements that were prepared on db. Use the texts, or Prepare of the
// transaction: pgx prepares each text once for each connection.
func (s *SQLStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	end := func() {}
	defer func() { end() }()
	return atomically(ctx, s.Store, id, hold, func(t *transaction) (tx *sql.Tx, err error) {
		tx, end, err = sqlHandle(ctx, t)
		return tx, err
	}, run)
}

// SwapTx is [Store.SwapTx] within tx, which a handler received, or which the caller has
// begun with BeginTx of a *sql.DB.
func (s *SQLStore) SwapTx(ctx context.Context, tx *sql.Tx, changes []store.Change) (answers []store.SwapResult, err error) {
	if tx == nil {
		return nil, errors.New("swap: the transaction is nil")
	}
	err = onConn(ctx, tx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		answers, err = s.swapIn(ctx, conn, changes)
		return err
	})
	return answers, err
}
