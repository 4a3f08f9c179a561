package postgres

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Capabilities reads what the server says of itself, for the role and database
// that the pool's connections use. It is not linearizable when it is a standby,
// and not durable when fsync or full_page_writes is off, or synchronous_commit is
// off for these connections. Outcomes are kept up to 1 MiB, in batches of at most
// 1000 changes. It fails with ErrNoSchema when the tables are missing.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	const read = `SELECT NOT pg_is_in_recovery(),
current_setting('fsync') <> 'off' AND current_setting('synchronous_commit') <> 'off' AND current_setting('full_page_writes') <> 'off',
to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL`
	caps := store.Capabilities{SameTx: true, Flushers: flushers, MaxOutcome: maxOutcome, MaxBatch: maxBatch}
	t, err := s.tables(ctx)
	if err != nil {
		return store.Capabilities{}, fault("read capabilities", err)
	}
	var there bool
	row := s.pool.QueryRow(ctx, read, t.in("semel_records"), t.in("semel_notes"))
	if err := row.Scan(&caps.Linearizable, &caps.Durable, &there); err != nil {
		return store.Capabilities{}, fault("read capabilities", err)
	}
	if !there {
		return store.Capabilities{}, fmt.Errorf("read capabilities: %w", ErrNoSchema)
	}
	return caps, nil
}

// flushers is how many batches at a time PostgreSQL is quickest with; the engine
// begins no more than it needs.
const flushers = 2
