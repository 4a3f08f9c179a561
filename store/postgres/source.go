package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// source is the application's pool, from which a store takes connections.
type source interface {
	// acquire waits for a connection until ctx ends.
	acquire(ctx context.Context) (lease, error)
	// usage returns how many connections are in use, and how many may be.
	usage() (inUse, limit int)
	// pool identifies the pool: a *pgxpool.Pool or a *sql.DB.
	pool() any
}

// lease is a connection that its caller has alone until it releases it. The zero lease
// is none.
type lease struct {
	*pgx.Conn
	lender

	on  *tables // nil: not found yet, or not needed
	own bool    // it is of the sessions, which have their settings
}

// lender takes a connection back.
type lender interface {
	// Release gives the connection back. It is closed if it is closed, busy or in a
	// transaction. A second Release does nothing.
	Release()
	// Hijack gives the connection up while one of its calls is running. Release is
	// called after that call.
	Hijack() *pgx.Conn
}

// The transaction status of a session, as the driver last received it.
const (
	outside = 'I' // outside of a transaction
	inside  = 'T'
	aborted = 'E'
)

// pgxSource takes connections from a pool of pgx.
type pgxSource struct{ *pgxpool.Pool }

func (s pgxSource) acquire(ctx context.Context) (lease, error) { return leaseOf(s.Acquire(ctx)) }

// leaseOf returns the lease of a connection of a pool of pgx.
func leaseOf(conn *pgxpool.Conn, err error) (lease, error) {
	if err != nil {
		return lease{}, err
	}
	return lease{Conn: conn.Conn(), lender: conn}, nil
}

func (s pgxSource) usage() (inUse, limit int) {
	stat := s.Stat()
	return int(stat.AcquiredConns()), int(stat.MaxConns())
}

func (s pgxSource) pool() any { return s.Pool }
