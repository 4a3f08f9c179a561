package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Capabilities reads the settings of one of the application's connections; the others
// must have the same. It fails, and names the setting, if the store cannot work with
// it: max_allowed_packet below 8 MiB, innodb_rollback_on_timeout ON, the binlog_format
// STATEMENT, the sql_mode ORACLE or EMPTY_STRING_IS_NULL, and character sets in which a
// quote can be part of a character. The time zone and the default isolation level do
// not matter.
//
// A read-only server is not linearizable: it may be a replica. What the records survive
// depends on innodb_flush_log_at_trx_commit, innodb_doublewrite, innodb_flush_method
// and, with a binary log, on sync_binlog. Replication to other servers is not counted,
// because it is asynchronous.
//
// On a Galera cluster an open transaction excludes no other writers, because they may
// be connected to another node. Other changes reach all nodes before they are reported,
// and connections of [Open] wait until their node has seen them (wsrep_sync_wait).
//
// Outcomes have at most 1 MiB, and batches at most 1000 changes and what
// max_allowed_packet allows. It fails with ErrNoSchema if a table is missing, and if a
// table is not stored by InnoDB.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	caps, err := s.capabilities(ctx)
	if err != nil {
		return store.Capabilities{}, fault("read capabilities", err)
	}
	return caps, nil
}

func (s *Store) capabilities(ctx context.Context) (store.Capabilities, error) {
	f, err := s.dialect(ctx)
	if err != nil {
		return store.Capabilities{}, err
	}
	v, err := s.readSettings(ctx)
	if err != nil {
		return store.Capabilities{}, err
	}
	if err := errors.Join(v.check(), s.checkTables(ctx)); err != nil {
		return store.Capabilities{}, err
	}
	caps := store.Capabilities{
		Linearizable: v["read_only"] == "OFF", Connections: s.db, Exclusion: store.ExcludesRecord, Ordered: true,
		ConcurrentSwaps: 2, MaxOutcome: maxOutcome, MaxBatch: maxBatch, MaxBytes: f.maxBytes,
	}
	caps.Survives, caps.SurvivesBecause = v.survives()
	if f.galera {
		caps.Exclusion = store.ExcludesNothing
		caps.Linearizable = caps.Linearizable && v["wsrep_sync_wait"] == syncWait
	}
	return caps, nil
}

// checkTables requires that the tables exist and are transactional.
func (s *Store) checkTables(ctx context.Context) error {
	const read = `SELECT table_name, coalesce(engine, '') FROM information_schema.tables
WHERE table_schema = database() AND table_name IN ('semel_records', 'semel_notes', 'semel_guard')`
	rows, err := s.in(s.db).QueryContext(ctx, read)
	if err != nil {
		return err
	}
	defer rows.Close()
	tables := 0
	for rows.Next() {
		var name, engine string
		if err := rows.Scan(&name, &engine); err != nil {
			return err
		}
		if engine != "InnoDB" {
			return fmt.Errorf("the engine of table %s is %s: it must be InnoDB", name, engine)
		}
		tables++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if tables < 3 {
		return ErrNoSchema
	}
	return nil
}
