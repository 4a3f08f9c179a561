package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/sqlname"
)

// connectionBound limits how long a call without a deadline, such as a list, waits
// for a connection. Such calls must not hang if the program uses all connections
// that SetMaxOpenConns allows. It does not limit the call's work on the connection.
const connectionBound = 5 * time.Second

// acquire takes a connection, which the caller must close.
func (s *Store) acquire(ctx context.Context) (*sql.Conn, error) {
	if s.invalid != nil {
		return nil, s.invalid
	}
	wait, cancel := context.WithTimeout(ctx, connectionBound)
	defer cancel()
	conn, err := s.db.Conn(wait)
	if err != nil {
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	return conn, nil
}

// named puts the names of the store's tables into a statement.
func (s *Store) named(text string) string { return sqlname.Rename(text, s.prefix) }

// query calls read with the rows of a statement; read closes them.
func (s *Store) query(ctx context.Context, read func(rows *sql.Rows) error, text string, args ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	rows, err := conn.QueryContext(ctx, s.named(text), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return read(rows)
}
