package sqlite

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Capabilities reads what one of db's connections says of its settings; the
// others are taken to say the same. Outcomes are kept up to 1 MiB, in batches of
// at most 1000 changes. It fails with ErrNoSchema when the tables are missing.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	if _, err := s.statements(ctx); err != nil {
		return store.Capabilities{}, s.fault(ctx, "read capabilities", err)
	}
	durable, err := s.durable(ctx)
	if err != nil {
		return store.Capabilities{}, s.fault(ctx, "read capabilities", err)
	}
	return store.Capabilities{
		SameTx: true, Linearizable: true, Durable: durable, Exclusive: true, Flushers: 1,
		MaxOutcome: maxOutcome, MaxBatch: maxBatch,
	}, nil
}

// Numbers of PRAGMA synchronous.
const (
	synchronousFull  = 2
	synchronousExtra = 3
)

// durable reports whether a commit is on disk before it is told.
func (s *Store) durable(ctx context.Context) (bool, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	var mode string
	var synchronous int
	if err := conn.QueryRowContext(ctx, `PRAGMA main.journal_mode`).Scan(&mode); err != nil {
		return false, fmt.Errorf("read journal_mode: %w", err)
	}
	if err := conn.QueryRowContext(ctx, `PRAGMA main.synchronous`).Scan(&synchronous); err != nil {
		return false, fmt.Errorf("read synchronous: %w", err)
	}
	switch mode {
	case "wal", "truncate", "persist":
		return synchronous >= synchronousFull, nil
	case "delete":
		// Only EXTRA syncs the directory that the journal was deleted from.
		return synchronous >= synchronousExtra, nil
	default: // memory, off
		return false, nil
	}
}
