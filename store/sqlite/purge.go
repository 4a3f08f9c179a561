package sqlite

import (
	"context"
)

// purgeBatch is the number of records that one transaction removes, so that writers
// can write in between.
const purgeBatch = 500

// Purge removes the records that expired first. It works in transactions of 500
// records, and begins none if there is nothing to remove. Records removed before an
// error are counted and stay removed. If another connection locks the database for
// two seconds, Purge fails with ErrBusy.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	gone := 0
	for gone < limit {
		batch := min(limit-gone, purgeBatch)
		n, err := s.purge(ctx, batch)
		gone += n
		if err != nil {
			return gone, s.fault(ctx, "purge", err)
		}
		if n < batch {
			break
		}
	}
	return gone, nil
}

func (s *Store) purge(ctx context.Context, limit int) (int, error) {
	if expired, err := s.any(ctx, verbAnyExpired); err != nil || !expired {
		return 0, err
	}
	w, err := s.begin(ctx, verbLock)
	if err != nil {
		return 0, err
	}
	defer w.leave(ctx)
	n, err := w.exec(ctx, verbPurge, limit)
	if err != nil || n == 0 {
		return 0, err
	}
	if _, err := w.commit(ctx); err != nil {
		return 0, err
	}
	return int(n), nil
}
