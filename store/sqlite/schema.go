package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// Schema returns the migrations, one plain SQL file each, sorted by name. Package
// migrate/sqlite runs them; other tools can, too.
func Schema() fs.FS {
	sub, _ := fs.Sub(schemaFiles, "schema") // the name is valid
	return sub
}

// fault adds to err what the store was doing. If SQLite does not know a table, the
// error is ErrNoSchema.
func (s *Store) fault(ctx context.Context, doing string, err error) error {
	if code := codeOf(err) & primary; code == codeError && s.lacksTables(ctx) {
		return fmt.Errorf("%s: %w: %w", doing, ErrNoSchema, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (s *Store) lacksTables(ctx context.Context) bool {
	const count = `SELECT count(*) FROM sqlite_schema
WHERE type = 'table' AND name IN ('semel_records', 'semel_notes', 'semel_guard', 'semel_salt')`
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var tables int
	err := s.db.QueryRowContext(ctx, s.named(count)).Scan(&tables)
	return err == nil && tables < 4
}
