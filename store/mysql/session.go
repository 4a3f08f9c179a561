package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"unicode"
)

// driverConn is a connection of the driver.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	connState
}

// connState has what package database/sql asks a connection besides its statements.
type connState interface {
	driver.Pinger
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// session is a connection that remembers the errors of its transaction, and refuses
// statements that would no longer be in the transaction. Package database/sql makes
// one call at a time.
type session struct {
	driverConn

	net     net.Conn
	tx      *txState // nil outside of a transaction
	reading bool     // a result is open
}

// txState is the state of a transaction, as its statements have shown it.
type txState struct {
	handlers bool // the transaction of Atomic's handler, which must not end it
	sealed   bool // the handler has returned
	over     bool // ended, by Atomic or by the handler
	ended    bool // the handler called Commit or Rollback
	touched  bool // the handler sent a statement that may have ended it

	dead error // why the transaction is or will be rolled back: a conflict, or a lost connection
	lost bool  // the connection is lost
	met  error // an interrupted statement, which the handler has not undone
}

// statementKind is the kind of a statement that the store itself sends in a
// transaction. It is in the statement's context; the handler's statements have none.
type statementKind int

const (
	beginning statementKind = iota + 1 // BeginTx sends nothing: the next statement begins the transaction
	answering                          // a lock of another transaction is an answer, and no interruption
	closing                            // the handler has returned
	restoring                          // a setting is restored, in a dead transaction too
)

type kindKey struct{}

func withKind(ctx context.Context, p statementKind) context.Context {
	return context.WithValue(ctx, kindKey{}, p)
}

func kindOf(ctx context.Context) statementKind {
	p, _ := ctx.Value(kindKey{}).(statementKind)
	return p
}

// mayRun reports why a statement must not be sent.
func (s *session) mayRun(ctx context.Context) error {
	switch {
	case s.reading:
		return errInUse
	case s.tx == nil, kindOf(ctx) == restoring:
		return nil
	case s.tx.over, s.tx.sealed && kindOf(ctx) != closing:
		return ErrEnded
	default:
		return s.tx.dead
	}
}

// note remembers an error.
func (s *session) note(ctx context.Context, err error) error {
	if err == nil || s.tx == nil || errors.Is(err, driver.ErrSkip) || errors.Is(err, io.EOF) {
		return err
	}
	switch code := codeOf(err); {
	case isConflict(err), code == codeLocksFull:
		s.tx.dead = withMark(err)
	case code != 0 && isInterrupted(err) && kindOf(ctx) != answering:
		s.tx.met = withMark(err)
	}
	if s.tx.dead == nil && !s.reading && !s.IsValid() {
		s.tx.dead, s.tx.lost = errors.Join(errLost, err), true
	}
	return err
}

// ExecContext runs a statement.
func (s *session) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := s.mayRun(ctx); err != nil {
		return nil, err
	}
	s.touch(ctx, query)
	result, err := s.driverConn.ExecContext(ctx, query, args)
	if err == nil && s.tx != nil && s.tx.met != nil && undoes(query) {
		s.tx.met = nil
	}
	return result, s.note(ctx, err)
}

// touch keeps that a statement of the handler may end the transaction.
func (s *session) touch(ctx context.Context, query string) {
	if s.tx == nil || s.tx.touched || kindOf(ctx) != 0 {
		return
	}
	s.tx.touched = !staysInTx(query)
}

// staysInTx reports whether a text certainly does not end the transaction. SET is not
// among them, because SET autocommit commits, nor is CALL, because a procedure can.
func staysInTx(query string) bool {
	query = strings.TrimRight(query, "; \t\r\n")
	if strings.Contains(query, ";") {
		return false // it may be several statements
	}
	word := strings.TrimLeft(query, "( \t\r\n")
	if end := strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		word = word[:end]
	}
	switch strings.ToUpper(word) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "DO",
		"SHOW", "EXPLAIN", "DESCRIBE", "DESC", "SAVEPOINT", "RELEASE":
		return true
	default:
		return undoes(query)
	}
}

// undoes reports whether a statement goes back to a savepoint.
func undoes(query string) bool {
	words := strings.Fields(query)
	return len(words) > 1 && strings.EqualFold(words[0], "ROLLBACK") &&
		(strings.EqualFold(words[1], "TO") || len(words) > 2 && strings.EqualFold(words[2], "TO"))
}

// QueryContext runs a statement that gives rows.
func (s *session) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.mayRun(ctx); err != nil {
		return nil, err
	}
	s.touch(ctx, query)
	return s.opened(ctx)(s.driverConn.QueryContext(ctx, query, args))
}

// opened keeps that a result is open.
func (s *session) opened(ctx context.Context) func(driver.Rows, error) (driver.Rows, error) {
	return func(rows driver.Rows, err error) (driver.Rows, error) {
		if err != nil {
			return nil, s.note(ctx, err)
		}
		s.reading = true
		return &sessionRows{rows.(driverRows), s}, nil
	}
}

// PrepareContext prepares a statement.
func (s *session) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := s.mayRun(ctx); err != nil {
		return nil, err
	}
	s.touch(ctx, query)
	prepared, err := s.driverConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, s.note(ctx, err)
	}
	return &sessionStatement{prepared.(driverStatement), s, query}, nil
}

// BeginTx begins a transaction.
func (s *session) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := s.mayRun(ctx); err != nil {
		return nil, err
	}
	if kindOf(ctx) == beginning {
		s.tx = &txState{handlers: true}
		return &sessionTx{s}, nil
	}
	if _, err := s.driverConn.BeginTx(ctx, o); err != nil {
		return nil, err
	}
	s.tx = &txState{}
	return &sessionTx{s}, nil
}

// sessionTx ends a transaction.
type sessionTx struct{ *session }

// Commit commits. It fails if the server has rolled the transaction back. Within
// Atomic it is refused: the transaction is rolled back.
func (t *sessionTx) Commit() error {
	tx := t.tx
	switch {
	case tx.handlers:
		tx.ended = true
		return errors.Join(ErrEnded, t.Rollback())
	case tx.dead != nil:
		return errors.Join(tx.dead, t.Rollback())
	}
	t.tx = nil
	_, err := t.driverConn.ExecContext(context.Background(), `COMMIT`, nil)
	return withMark(err)
}

// Rollback rolls back, unless the transaction has ended.
func (t *sessionTx) Rollback() error {
	tx := t.tx
	if tx.handlers && !tx.sealed {
		tx.ended = true
	}
	if !tx.handlers {
		t.tx = nil
	}
	if tx.over || tx.lost {
		return nil
	}
	tx.over = true
	_, err := t.driverConn.ExecContext(context.Background(), `ROLLBACK`, nil)
	return err
}

// driverStatement is a prepared statement of the driver.
type driverStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type sessionStatement struct {
	driverStatement

	s     *session
	query string
}

// ExecContext runs the statement.
func (p *sessionStatement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := p.s.mayRun(ctx); err != nil {
		return nil, err
	}
	p.s.touch(ctx, p.query)
	result, err := p.driverStatement.ExecContext(ctx, args)
	return result, p.s.note(ctx, err)
}

// QueryContext runs a statement that gives rows.
func (p *sessionStatement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := p.s.mayRun(ctx); err != nil {
		return nil, err
	}
	p.s.touch(ctx, p.query)
	return p.s.opened(ctx)(p.driverStatement.QueryContext(ctx, args))
}

// driverRows is a result of the driver.
type driverRows interface {
	driver.RowsNextResultSet
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

type sessionRows struct {
	driverRows

	s *session
}

// Next reads one row.
func (r *sessionRows) Next(dest []driver.Value) error {
	return r.s.note(context.Background(), r.driverRows.Next(dest))
}

// NextResultSet reads the beginning of the next result.
func (r *sessionRows) NextResultSet() error {
	return r.s.note(context.Background(), r.driverRows.NextResultSet())
}

// Close closes the result.
func (r *sessionRows) Close() error {
	r.s.reading = false
	return r.s.note(context.Background(), r.driverRows.Close())
}
