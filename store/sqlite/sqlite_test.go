package sqlite_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	runContract(t, open(t), sqlite.Options{}, unchanged)
}

func unchanged(s *sqlite.Store) store.TxStore[*sql.Tx] { return s }

func TestContractOnDefaultSettings(t *testing.T) {
	t.Parallel()
	runContract(t, plain(t), sqlite.Options{}, unchanged, append(storetest.CallParts(), "Zombie", "ZombieTx", "PurgeTx", "Storm", "StormTx")...)
}

// TestContractWithAPrefix: the store uses only the tables with its prefix.
func TestContractWithAPrefix(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "semel.db")))(t)
	t.Cleanup(func() { db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{Prefix: "once_"}))
	if _, err := sqlite.New(db, sqlite.Options{}).Capabilities(t.Context()); !errors.Is(err, sqlite.ErrNoSchema) {
		t.Errorf("Capabilities without the prefix = %v, want ErrNoSchema", err)
	}
	mustExec(t, db, `CREATE TABLE effects (key TEXT NOT NULL)`)
	runContract(t, db, sqlite.Options{Prefix: "once_"}, unchanged, storetest.CallParts()...)
	if salt, err := sqlite.New(db, sqlite.Options{Prefix: "once_"}).Salt(t.Context()); err != nil || len(salt) != 32 {
		t.Errorf("Salt = %d bytes, %v, want 32", len(salt), err)
	}
}

// TestInvalidPrefix: every call fails, with the name of the field.
func TestInvalidPrefix(t *testing.T) {
	t.Parallel()
	s := sqlite.New(open(t), sqlite.Options{Prefix: "a b"})
	_, read := s.Get(t.Context(), []store.ID{{1}})
	_, listed := s.Scan(t.Context(), store.Query{})
	_, written := s.Swap(t.Context(), []store.Change{create("key", store.Succeeded, 1)})
	_, capable := s.Capabilities(t.Context())
	_, salted := s.Salt(t.Context())
	for call, err := range map[string]error{"Get": read, "Scan": listed, "Swap": written, "Capabilities": capable, "Salt": salted} {
		if err == nil || !strings.Contains(err.Error(), "Options.Prefix") {
			t.Errorf("%s = %v, want an error that names Options.Prefix", call, err)
		}
	}
}

// runContract runs the suite, or some parts of it. It empties the tables for each check: the
// suite needs hundreds of stores, and this is faster than new databases.
func runContract(t *testing.T, db *sql.DB, o sqlite.Options, as func(*sqlite.Store) store.TxStore[*sql.Tx], parts ...string) {
	t.Helper()
	s := sqlite.New(db, o)
	// A shorter wait than in production, because the suite often has a transaction
	// wait for itself.
	s.SetPatience(200 * time.Millisecond)
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] {
		t.Helper()
		empty(t, db, cmp.Or(o.Prefix, "semel_"))
		return storetest.Subject[*sql.Tx]{
			Store:   as(s),
			Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { return effect(ctx, tx, key) },
			Effects: func(key string) int { return effects(t, db, key) },
			Begin: map[string]storetest.BeginFunc[*sql.Tx]{
				"default": func(ctx context.Context) (*sql.Tx, func() error, func() error, error) {
					tx, err := db.BeginTx(ctx, nil)
					return tx, tx.Commit, tx.Rollback, err
				},
			},
		}
	}, parts...)
}

// empty removes the records of a check.
func empty(t testing.TB, db *sql.DB, prefix string) {
	t.Helper()
	tx := begin(t, db)
	for _, table := range []string{prefix + "records", prefix + "notes", prefix + "guard", "effects"} {
		mustExec(t, tx, `DELETE FROM `+table)
	}
	check.Require(t, tx.Commit())
}

// sequentialStore lets all changes of a batch but the first join it, a few at a
// time.
type sequentialStore struct{ *sqlite.Store }

func (s sequentialStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	caps, err := s.Capabilities(ctx)
	if err != nil || store.CheckBatch(changes, caps.MaxBatch) != nil { // batches that cannot join
		return s.Store.Swap(ctx, changes)
	}
	rest := changes[min(1, len(changes)):]
	answers, err := s.SwapJoinable(ctx, changes[:len(changes)-len(rest)], func() []store.Change {
		n := min(len(rest), 1+rand.IntN(20))
		few := rest[:n]
		rest = rest[n:]
		return few
	})
	for err == nil && len(answers) < len(changes) { // no change joins a busy batch
		answers = append(answers, store.SwapResult{Busy: true})
	}
	return answers, err
}

// The contract holds for changes that join others.
func TestContractOfJoiningChanges(t *testing.T) {
	t.Parallel()
	runContract(t, open(t), sqlite.Options{}, func(s *sqlite.Store) store.TxStore[*sql.Tx] { return sequentialStore{s} },
		append(storetest.StoreCallParts(), "Zombie", "Transition", "Model", "ModelTx", "LostReply")...)
}
