package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// openApp opens a server that does not listen. Tests of its parts are in the package. Without
// arguments the server has an SQLite database of its own.
func openApp(t *testing.T, args ...string) *app {
	t.Helper()
	if len(args) == 0 {
		args = []string{"-db", "sqlite:" + filepath.Join(t.TempDir(), "chat.db")}
	}
	c := check.Must(parseConfig(args, func(string) string { return "" }))(t)
	s := check.Must(open(t.Context(), c, slog.New(slog.DiscardHandler), hooks{}))(t)
	t.Cleanup(func() { _ = s.close(context.WithoutCancel(t.Context())) })
	return s
}

// inTx runs fn in a transaction that must commit, and returns its value.
func inTx[T any](t *testing.T, s *app, fn func(context.Context, chatdb.Tx) (T, error)) (v T) {
	t.Helper()
	check.Require(t, s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		v, err = fn(ctx, tx)
		return err
	}))
	return v
}

// addUser adds a user whose session has the token "token of " and the name.
func (s *app) addUser(t *testing.T, name string) chatdb.Session {
	t.Helper()
	return inTx(t, s, func(ctx context.Context, tx chatdb.Tx) (chatdb.Session, error) {
		u, err := chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: name, NameKey: name})
		if err != nil {
			return chatdb.Session{}, err
		}
		return s.writer.OpenSession(ctx, tx, u, "phone", digestOf("token of "+name))
	})
}

// revoke ends a session without its event.
func (s *app) revoke(t *testing.T, user int64, session string) {
	t.Helper()
	inTx(t, s, func(ctx context.Context, tx chatdb.Tx) (any, error) {
		return nil, s.writer.RevokeSession(ctx, tx, user, session)
	})
}

// TestReadyAsksBothDatabases closes one of them.
func TestReadyAsksBothDatabases(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*app) error{
		"domain":  func(s *app) error { return s.domain.Close() },
		"records": func(s *app) error { return s.records.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := "sqlite:" + t.TempDir()
			s := openApp(t, "-db", filepath.Join(dir, "chat.db"), "-records", filepath.Join(dir, "records.db"))
			ask := func(path string) int {
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				return w.Code
			}
			check.Equal(t, ask("/readyz"), http.StatusOK, "ready")
			check.Require(t, lose(s))
			check.Equal(t, ask("/readyz"), http.StatusServiceUnavailable, "ready without the %s database", name)
			check.Equal(t, ask("/healthz"), http.StatusOK, "healthy")
		})
	}
}

// TestRecordsAreTheDriversOwn is in the package because it uses the store below the
// engine: a record is written in the chat's transaction, the store has the optional
// interfaces of the driver's store, and a transaction of another database is
// rejected.
func TestRecordsAreTheDriversOwn(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (string, chatdb.Tx){
		"sqlite": func(t *testing.T) (string, chatdb.Tx) {
			return "sqlite:" + filepath.Join(t.TempDir(), "chat.db"), chatdb.OnPostgres(pgx.Tx(nil))
		},
		"postgres": func(t *testing.T) (string, chatdb.Tx) {
			return realtest.Postgres(t).Database(t), chatdb.OnSQLite(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, foreign := open(t)
			s := openApp(t, "-db", db, "-may-lose") // the tests' PostgreSQL does not wait for the disk
			c := store.Change{To: store.Record{
				ID: store.NewID("op", "scope", "key"), Token: store.Token{State: store.Pending, Owner: 1},
				Operation: "op", Scope: "scope", Key: "key",
			}}
			inTx(t, s, func(ctx context.Context, tx chatdb.Tx) (any, error) {
				answers, err := s.records.store.SwapTx(ctx, tx, []store.Change{c})
				if err == nil && !answers[0].Applied(c) {
					t.Errorf("SwapTx = %+v, want the change applied", answers[0])
				}
				return nil, err
			})
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
			_, err := s.records.store.SwapTx(t.Context(), foreign, []store.Change{c})
			check.ErrorIs(t, err, errOtherDatabase, "SwapTx in a transaction of another database")
		})
	}
}
