package ops

import (
	"context"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// database is the database that --db names.
type database struct {
	name    string // without a password
	system  string // as OpenTelemetry names it
	records store.Store
	outbox  store.OutboxReader
	// engine returns an engine over the records.
	engine func(o semel.Options) (semel.Runner, error)
	// noting returns an engine that writes a note with its changes.
	noting  func(o semel.Options, n *pendingNote) (semel.Runner, error)
	migrate func(ctx context.Context) error
	// readSalt reads the salt of the hashes. It never creates a salt.
	readSalt func(ctx context.Context) ([]byte, error)
	salt     salt // set by withRecords
	// partitions is nil for a database without partitions.
	partitions func(o postgres.PartitionOptions) (*postgres.Partitions, error)
	close      func()
}

// openMode defines what happens if the database or its tables are missing.
type openMode bool

const (
	// mustExist: return an error, so that a mistyped name creates no database.
	mustExist openMode = false
	// mayBeNew: the command creates it.
	mayBeNew openMode = true
)

// open opens the database that --db names. It creates no tables.
func open(ctx context.Context, at dbName, e openMode) (*database, error) {
	scheme, rest, _ := strings.Cut(at.db, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return openSQLite(ctx, rest, at, e)
	case scheme == "postgres", scheme == "postgresql":
		return openPostgres(ctx, at)
	case scheme == "mysql":
		return openMySQL(ctx, at)
	default:
		// The rest of the name may contain a password.
		return nil, exit.Usagef("--%s must be sqlite:PATH, postgres://… or mysql://…", flagDB)
	}
}

// engineOver returns a function that makes engines over s. The engines accept a
// store that may lose records: operators must be able to see and resolve the
// remaining records of such a store.
func engineOver(s store.Store) func(semel.Options) (semel.Runner, error) {
	return func(o semel.Options) (semel.Runner, error) {
		o.Survive = store.NoFailure
		return semel.NewRunner(s, o)
	}
}

// transactional is engineOver for engines that use the transactions of s, and its outbox.
func transactional[Tx any](s store.TxStore[Tx]) func(semel.Options) (semel.Runner, error) {
	return func(o semel.Options) (semel.Runner, error) {
		o.Survive = store.NoFailure
		e, err := semel.New(s, o)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
}

// answers reports whether the database answers at all, after it gave no answer
// for one record.
func answers(ctx context.Context, db *database) bool {
	_, err := db.records.Get(ctx, []store.ID{{}})
	return err == nil
}
