package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// connectTimeout bounds the wait for a server's first answer.
const connectTimeout = 10 * time.Second

// openPostgres connects to a server.
func openPostgres(ctx context.Context, at dbName) (*database, error) {
	config, err := pgxpool.ParseConfig(at.db)
	if err != nil {
		return nil, exit.Usagef("--%s: %w", flagDB, singleLineError{err}) // the error contains no password
	}
	to := config.ConnConfig
	if to.RuntimeParams["application_name"] == "" {
		to.RuntimeParams["application_name"] = "semel"
	}
	if to.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// A pooler may give each transaction another connection, on which
		// earlier prepared statements do not exist.
		to.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	postgres.WatchReplication(to)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, withCode(err)
	}
	reached, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := pool.Ping(reached); err != nil {
		pool.Close()
		return nil, withCode(err)
	}
	s, err := postgres.New(pool, postgres.Options{Schema: at.schema, Prefix: at.prefix})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &database{
		name:   fmt.Sprintf("postgres://%s:%d/%s", to.Host, to.Port, to.Database),
		system: "postgresql", records: s, outbox: s.Outbox(), engine: transactional(s), noting: notingEngine(s), readSalt: s.Salt, //nolint:contextcheck // semel.NewRunner bounds its one question itself
		migrate: func(ctx context.Context) error {
			return pgmigrate.Up(ctx, pool, pgmigrate.Options{Schema: at.schema, Prefix: at.prefix})
		},
		partitions: func(o postgres.PartitionOptions) (*postgres.Partitions, error) {
			return postgres.NewPartitions(s, o)
		},
		close: pool.Close,
	}, nil
}
