package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// tables finds the tables once, by the search_path of the pool's connections unless
// the options name the schema.
func (s *Store) tables(ctx context.Context) (*tables, error) {
	if t := s.found.Load(); t != nil {
		return t, nil
	}
	const read = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1::text)`
	records := s.prefix + "records"
	if s.schema != "" {
		records = pgx.Identifier{s.schema, records}.Sanitize()
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the tables: %w", err)
	}
	defer conn.Release()
	var schema string
	switch err := conn.QueryRow(ctx, read, records).Scan(&schema); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("find the tables: %w", ErrNoSchema)
	case err != nil:
		return nil, fmt.Errorf("find the tables: %w", err)
	}
	mode := conn.Config().DefaultQueryExecMode
	t := newTables(schema, s.prefix, mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol)
	t.first, t.firstHeld = t.in(s.texts.first), t.in(s.texts.firstHeld)
	s.found.Store(t)
	return t, nil
}
