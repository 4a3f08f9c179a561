package sqlite

import (
	"context"
	"fmt"
)

// All writers share one lock, and waiting for it is not fair. So calls that often
// find nothing to do first look without the lock.
const (
	sqlAnyWaits = `SELECT EXISTS (SELECT 1 FROM semel_records INDEXED BY semel_queue
WHERE state = 1 AND operation = ? AND priority IN (-4, -3, -2, -1, 0, 1, 2, 3, 4) AND due <= ` + now + `)`

	sqlAnyExpired = `SELECT EXISTS (SELECT 1 FROM semel_records WHERE ` + purgeable + `)`
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
