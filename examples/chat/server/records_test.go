package server

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// TestRecordsAreTheDriversOwn is in the package because it uses the store below the
// engine: a record is written in the chat's transaction, the store has the optional
// interfaces of the driver's store, and a transaction of another database is
// rejected.
func TestRecordsAreTheDriversOwn(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (string, chatdb.Tx){
		"sqlite": func(t *testing.T) (string, chatdb.Tx) {
			return filepath.Join(t.TempDir(), "chat.db"), chatdb.OnPostgres(pgx.Tx(nil))
		},
		"postgres": func(t *testing.T) (string, chatdb.Tx) {
			return realtest.Postgres(t).Database(t), chatdb.OnSQLite(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, foreign := open(t)
			s := openApp(t, config{
				db: db, records: db, mode: modeInline, lease: time.Minute, retention: retention, sweep: time.Minute,
				mayLose: true, // the tests' PostgreSQL does not wait for the disk
			})
			c := store.Change{To: store.Record{
				ID: store.NewID("op", "scope", "key"), Token: store.Token{State: store.Pending, Owner: 1},
				Operation: "op", Scope: "scope", Key: "key",
			}}
			err := s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) error {
				answers, err := s.records.store.SwapTx(ctx, tx, []store.Change{c})
				if err == nil && !answers[0].Applied(c) {
					t.Errorf("SwapTx = %+v, want it in force", answers[0])
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			counter, ok := s.records.store.(store.Counter)
			if !ok {
				t.Fatal("the store does not count")
			}
			if counts, err := counter.Counts(t.Context()); err != nil || len(counts) != 1 || counts[0].Records != 1 {
				t.Errorf("Counts = %+v, %v; want the one record", counts, err)
			}
			if _, ok := s.records.store.(store.Dequeuer); !ok {
				t.Error("the store hands out nothing that waits")
			}
			if notes, err := admin.Notes(t.Context(), s.engine, c.To.ID); err != nil || len(notes) != 0 {
				t.Errorf("Notes = %+v, %v; want none", notes, err)
			}
			if _, err := s.records.store.SwapTx(t.Context(), foreign, []store.Change{c}); !errors.Is(err, errOtherDatabase) {
				t.Errorf("SwapTx in a transaction of another database = %v, want %v", err, errOtherDatabase)
			}
		})
	}
}

func openApp(t *testing.T, c config) *app {
	t.Helper()
	s, err := open(t.Context(), c, slog.New(slog.DiscardHandler), hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.closeDatabases)
	return s
}
