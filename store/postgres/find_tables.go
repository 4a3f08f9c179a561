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
	records := s.options.Prefix + "records"
	if s.options.Schema != "" {
		records = pgx.Identifier{s.options.Schema, records}.Sanitize()
	}
	conn, err := s.borrow(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the tables: %w", err)
	}
	defer conn.Release()
	var schema string
	err = conn.QueryRow(ctx, read, records).Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoSchema
	}
	if err != nil {
		return nil, fmt.Errorf("find the tables: %w", err)
	}
	t := newTables(schema, s.options.Prefix)
	s.found.Store(t)
	return t, nil
}
