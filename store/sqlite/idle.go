package sqlite

import (
	"context"
	"fmt"
)

// There is one lock for all who write, and those who wait for it have no queue. So
// what is asked again and again, and mostly for nothing, first looks without it.
const (
	sqlAnyWaits = `SELECT EXISTS (SELECT 1 FROM semel_records INDEXED BY semel_queue
WHERE state = 1 AND operation = ? AND priority IN (-4, -3, -2, -1, 0, 1, 2, 3, 4) AND due <= ` + now + `)`

	sqlAnyExpired = `SELECT EXISTS (SELECT 1 FROM semel_records WHERE ` + purgeable + `)`
)

// any tells whether there is, or may be, something for a verb to find. Without WAL
// a reader can find the database locked, and in a pool of one the connection that
// it needs can be its own caller's.
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
