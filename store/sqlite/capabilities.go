package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Capabilities reads the settings of one of db's connections; the others must have
// the same. Journal mode and synchronous decide what the records survive; a
// database in memory or a temporary one survives nothing. Outcomes have at most 1
// MiB, and batches at most 1000 changes. It fails with ErrNoSchema if the tables
// are missing.
func (s *Store) Capabilities(ctx context.Context) (store.Capabilities, error) {
	if _, err := s.statements(ctx); err != nil {
		return store.Capabilities{}, s.fault(ctx, "read capabilities", err)
	}
	of, err := s.readDurability(ctx)
	if err != nil {
		return store.Capabilities{}, s.fault(ctx, "read capabilities", err)
	}
	survives, because := of.survives()
	return store.Capabilities{
		Linearizable: true, Survives: survives, SurvivesBecause: because, Connections: s.db, Exclusion: store.ExcludesAll, Ordered: true, ConcurrentSwaps: 1,
		MaxOutcome: maxOutcome, MaxBatch: maxBatch,
	}, nil
}

// durability has the settings that decide whether a commit is on disk before it is
// reported.
type durability struct {
	file        string // empty: the database is in memory, or temporary
	journal     string
	synchronous int
}

func (s *Store) readDurability(ctx context.Context) (durability, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return durability{}, err
	}
	defer conn.Close()
	var d durability
	var file sql.NullString
	const where = `SELECT file FROM pragma_database_list WHERE name = 'main'`
	if err := conn.QueryRowContext(ctx, where).Scan(&file); err != nil {
		return durability{}, fmt.Errorf("read database_list: %w", err)
	}
	if err := conn.QueryRowContext(ctx, `PRAGMA main.journal_mode`).Scan(&d.journal); err != nil {
		return durability{}, fmt.Errorf("read journal_mode: %w", err)
	}
	if err := conn.QueryRowContext(ctx, `PRAGMA main.synchronous`).Scan(&d.synchronous); err != nil {
		return durability{}, fmt.Errorf("read synchronous: %w", err)
	}
	d.file = file.String
	return d, nil
}

// The values of PRAGMA synchronous.
const (
	synchronousFull  = 2
	synchronousExtra = 3
)

// survives returns the worst failure that loses no commit, and the reason if that is
// less than PowerLoss.
func (d durability) survives() (store.Failure, string) {
	least := synchronousFull
	switch {
	case d.file == "":
		return store.NoFailure, "the SQLite database is in memory or temporary; open a file"
	case d.journal != "wal" && d.journal != "truncate" && d.journal != "persist" && d.journal != "delete":
		return store.NoFailure, fmt.Sprintf(
			"PRAGMA journal_mode is %s, so that a killed process can corrupt the database; sqlite.Open sets WAL", d.journal)
	case d.journal == "delete":
		least = synchronousExtra // only EXTRA syncs the directory that the journal was deleted from
	}
	if d.synchronous < least {
		return store.ProcessEnd, fmt.Sprintf(
			"PRAGMA synchronous is %s with journal_mode %s, on the connections of this *sql.DB (set in its data source name, or the default); sqlite.Open sets FULL with WAL",
			synchronousName(d.synchronous), d.journal)
	}
	return store.PowerLoss, ""
}

func synchronousName(n int) string {
	names := []string{"OFF", "NORMAL", "FULL", "EXTRA"}
	if n < 0 || n >= len(names) {
		return fmt.Sprint(n)
	}
	return names[n]
}
