package server

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/postgres"
)

// maxConns is how many connections a server has, unless the URL says otherwise
// with pool_max_conns.
const maxConns = 16

// openPostgres opens a database of a PostgreSQL server. It connects when it is
// first used.
func openPostgres(url string, c config) (*database, error) {
	settings, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(url, "pool_max_conns") {
		settings.MaxConns = maxConns
	}
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
		migrate: func(ctx context.Context) error { return migrate.Postgres(ctx, pool) },
	}, nil
}

// postgres lets an inline leader that is silent for a lease lose its transaction,
// and with it the right to its key. With a lease in the record nobody waits for
// that transaction.
func (c config) postgres() (o postgres.Options) {
	if c.mode == modeInline {
		o.IdleInTransaction = c.lease
	}
	return o
}
