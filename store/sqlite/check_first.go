package sqlite

import (
	"context"
	"fmt"
)

// any reports whether a verb may find something to do. Without WAL, a reader can
// find the database locked, and in a pool of one connection its own caller may hold
// the connection; any then returns true.
func (s *Store) any(ctx context.Context, v verb, args ...any) (bool, error) {
	all, err := s.statements(ctx)
	if err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var found bool
	err = all[v].QueryRowContext(wait, args...).Scan(&found)
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() == nil && (IsBusy(err) || wait.Err() != nil):
		return true, nil
	default:
		return false, fmt.Errorf("look for something to do: %w", err)
	}
}
