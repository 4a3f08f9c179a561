package mysql

import (
	"context"

	"github.com/semelgo/semel/store"
)

// Capabilities reads the server's settings.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	f, err := s.dialect(ctx)
	if err != nil {
		return store.Capabilities{}, fault("read capabilities", err)
	}
	return store.Capabilities{
		Linearizable: true, Survives: store.PowerLoss, Connections: s.db, Exclusion: store.ExcludesRecord, Ordered: true,
		ConcurrentSwaps: 1, MaxOutcome: maxOutcome, MaxBatch: maxBatch, MaxBytes: f.maxBytes,
	}, nil
}
