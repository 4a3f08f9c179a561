package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// connectionBound is how long a call waits for a connection, if its context does not end
// before that: lists and the like are called without a deadline, and must not hang where a
// program uses all connections that SetMaxOpenConns allows. What then runs on the connection
// is not bounded by it.
const connectionBound = 5 * time.Second

// acquire takes a connection, to be closed.
func (s *Store) acquire(ctx context.Context) (*sql.Conn, error) {
	wait, cancel := context.WithTimeout(ctx, connectionBound)
	defer cancel()
	conn, err := s.db.Conn(wait)
	if err != nil {
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	return conn, nil
}

// query hands the rows that a statement returns to read, which closes them.
func (s *Store) query(ctx context.Context, read func(rows *sql.Rows) error, text string, args ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return read(rows)
}
