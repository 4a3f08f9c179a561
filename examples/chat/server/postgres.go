package server

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/examples/chat/chatdb"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// maxConns is the size of the connection pool, unless pool_max_conns in the URL
// sets another.
const maxConns = 16

// openPostgres opens a PostgreSQL database. It connects at the first use.
func openPostgres(url string, c config) (*database, error) {
	settings, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(url, "pool_max_conns") {
		settings.MaxConns = maxConns
	}
	postgres.WatchReplication(settings.ConnConfig)
	pool, err := pgxpool.NewWithConfig(context.Background(), settings)
	if err != nil {
		return nil, err
	}
	s, err := postgres.New(pool, c.postgres())
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &database{
		DB: chatdb.Postgres(pool), name: shown(url),
		store:   records(s, chatdb.OnPostgres),
		migrate: func(ctx context.Context) error { return pgmigrate.Up(ctx, pool, pgmigrate.Options{}) },
	}, nil
}

// postgres returns the options of the store. An inline leader holds its key as
// long as its transaction is open, so the server ends a transaction that is idle
// for a lease. A leased attempt needs no such limit.
func (c config) postgres() (o postgres.Options) {
	if c.mode == modeInline {
		o.IdleInTransaction = c.lease
	}
	return o
}
