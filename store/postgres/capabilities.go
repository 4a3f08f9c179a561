package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// Capabilities reads what the server says, over one of the pool's connections. It is
// not linearizable when the server is a standby.
//
// Its records survive a failover if commits wait for the disk of a standby, that is if
// synchronous_standby_names is not empty and synchronous_commit is on or remote_apply,
// and if [WatchReplication] was called for the pool. The operator must then promote a
// standby that has all confirmed commits: of several, the one that has received most.
// Otherwise they survive a power loss, or less: only the end of a process when fsync or
// full_page_writes is off; no failure when synchronous_commit is off, on the
// connection or for new connections of its role and database, or when one of the
// tables or partitions is unlogged or temporary.
//
// Not seen are settings of single transactions (SET LOCAL synchronous_commit), other
// settings of the pool's other connections, and what changes later; a sweep reads
// Capabilities again.
//
// Outcomes are kept up to 1 MiB, in batches of at most 1000 changes. It fails with
// ErrNoSchema when the tables are missing, and with ErrNotPostgres when the server says
// that it is another product.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	const read = `SELECT version(), NOT pg_is_in_recovery(), to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL`
	caps := store.Capabilities{Connections: s.source.pool(), Exclusion: store.ExcludesRecord, Ordered: true, ConcurrentSwaps: flushers, MaxOutcome: maxOutcome, MaxBatch: maxBatch}
	err := s.on(ctx, "read capabilities", func(conn lease) (err error) {
		var version string
		var exist bool
		records, notes := conn.on.in("semel_records"), conn.on.in("semel_notes")
		if err := conn.QueryRow(ctx, read, records, notes).Scan(&version, &caps.Linearizable, &exist); err != nil {
			return err
		}
		switch {
		case !strings.HasPrefix(version, "PostgreSQL "):
			return fmt.Errorf("%w: version() is %q", ErrNotPostgres, version)
		case !exist:
			return ErrNoSchema
		}
		caps.Survives, caps.SurvivesBecause, err = survives(ctx, conn.Conn, records, notes)
		return err
	})
	if err != nil {
		return store.Capabilities{}, err
	}
	s.replicated.Store(caps.Survives == store.Failover)
	return caps, nil
}

// flushers is the number of concurrent batches with the highest throughput. The
// engine starts no more than it needs.
const flushers = 2
