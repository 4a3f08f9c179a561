package ops

import (
	"context"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// database is one that --db names.
type database struct {
	name    string // for people, without a password
	records store.Store
	// engine returns an engine over the records.
	engine func(o semel.Options) (*semel.Core, error)
	// noting returns one that keeps a note with what it changes.
	noting  func(o semel.Options, n *pendingNote) (*semel.Core, error)
	migrate func(ctx context.Context) error
	// readSalt reads the salt of the hashes; it is never made here.
	readSalt func(ctx context.Context) ([]byte, error)
	salt     salt // in withRecords
	// partitions is nil where a table has none.
	partitions func(o postgres.PartitionOptions) (*postgres.Partitions, error)
	close      func()
}

// existence says what to do about a database that is not there, or that has no
// tables.
type existence bool

const (
	// mustExist: a name that was mistyped makes no database.
	mustExist existence = false
	// mayBeNew: it is to be made.
	mayBeNew existence = true
)

// open opens the database that --db names. It makes no tables.
func open(ctx context.Context, name string, e existence) (*database, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return openSQLite(ctx, rest, e)
	case scheme == "postgres", scheme == "postgresql":
		return openPostgres(ctx, name)
	default:
		// The rest may hold a password.
		return nil, exit.Usagef("--%s must be sqlite:PATH or postgres://…", flagDB)
	}
}

// engineOver returns how to make an engine over s. It accepts a store that may lose
// records: the records that it still has must be shown and resolved all the more.
func engineOver[Tx any](s store.TxStore[Tx]) func(semel.Options) (*semel.Core, error) {
	return func(o semel.Options) (*semel.Core, error) {
		o.Survive = store.NoFailure
		e, err := semel.New(s, o)
		if err != nil {
			return nil, err
		}
		return e.Core, nil
	}
}
