package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/store"
)

const (
	// commitBound limits a COMMIT. After it the outcome is unknown.
	commitBound = 10 * time.Second

	maxOutcome = 1 << 20
	maxBatch   = 1000
)

var (
	_ store.TxStore[*sql.Tx] = (*Store)(nil)
	_ store.Auditor          = (*Store)(nil)
	_ store.Counter          = (*Store)(nil)
	_ store.Dequeuer         = (*Store)(nil)
)

// Store keeps records in a MariaDB or MySQL database. Its methods may be called
// concurrently.
type Store struct {
	db          *sql.DB // the application's pool, for the transactions of handlers
	lanes       *sql.DB // the store's own pool
	own         runner  // the same, with the names of the store's tables
	prefix      string
	server      *server
	commitBound time.Duration
}

// Options are optional settings of a [Store].
type Options struct {
	// Prefix begins the names of the tables, as in the options of migrate/mysql. Empty
	// means semel_.
	Prefix string
}

// New returns a store of the tables in db, which [Open] or [OpenConfig] has opened. It
// does not use db yet: the first call returns an error of the database. The caller
// closes db when the store is no longer used.
func New(db *sql.DB, o Options) (*Store, error) {
	prefix, err := sqlname.Prefix("Options.Prefix", o.Prefix)
	if err != nil {
		return nil, fmt.Errorf("semel/mysql: %w", err)
	}
	d, ok := db.Driver().(opened)
	if !ok {
		return nil, errors.New("semel/mysql: the database was not opened with mysql.Open or mysql.OpenConfig")
	}
	s := &Store{db: db, lanes: d.by.lanes, prefix: prefix, server: d.by.server, commitBound: commitBound}
	s.own = s.in(s.lanes)
	return s, nil
}

// runner runs statements: a pool, a connection or a transaction.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// in returns db with the names of the store's tables.
func (s *Store) in(db runner) runner {
	if s.prefix == sqlname.DefaultPrefix {
		return db
	}
	return prefixRunner{db, s.prefix}
}

// prefixRunner puts the names of the store's tables into statements. Values are never in
// them, but among the arguments.
type prefixRunner struct {
	runner

	prefix string
}

func (r prefixRunner) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return r.runner.ExecContext(ctx, strings.ReplaceAll(query, sqlname.DefaultPrefix, r.prefix), args...)
}

func (r prefixRunner) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return r.runner.QueryContext(ctx, strings.ReplaceAll(query, sqlname.DefaultPrefix, r.prefix), args...)
}

// dialect returns what the statements depend on. A connection reads it when it is
// opened.
func (s *Store) dialect(ctx context.Context) (*dialect, error) {
	if f := s.server.known.Load(); f != nil {
		return f, nil
	}
	if err := s.lanes.PingContext(ctx); err != nil {
		return nil, err
	}
	return s.server.known.Load(), nil
}
