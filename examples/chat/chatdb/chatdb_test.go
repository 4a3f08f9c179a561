package chatdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/sqlite"
)

// onEach runs a test on each database, with the chat's tables and users 1 to n.
func onEach(t *testing.T, n int, test func(t *testing.T, db chatdb.DB)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) chatdb.DB{
		"sqlite": openSQLite, "postgres": openPostgres, "mariadb": openMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			t.Cleanup(func() { _ = db.Close() })
			for range 2 { // migrating twice changes nothing
				inTx(t, db, chatdb.MigrateTx)
			}
			for i := range n {
				inTx(t, db, func(ctx context.Context, tx chatdb.Tx) error {
					_, err := chatdb.AddUserTx(ctx, tx, userNumber(i+1))
					return err
				})
			}
			test(t, db)
		})
	}
}

// userNumber is the user that onEach adds with this ID.
func userNumber(n int) chatdb.NewUser {
	return chatdb.NewUser{Name: fmt.Sprintf("User %d", n), NameKey: fmt.Sprintf("user %d", n), PasswordHash: fmt.Sprintf("hash %d", n)}
}

func openSQLite(t *testing.T) chatdb.DB {
	t.Helper()
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "chat.db")))(t)
	return chatdb.SQLite(db)
}

func openSQLiteFile(t *testing.T, name string) chatdb.DB {
	t.Helper()
	db := check.Must(sql.Open("sqlite", "file:"+name+"?_txlock=immediate&_pragma=busy_timeout(10)"))(t)
	t.Cleanup(func() { _ = db.Close() })
	return chatdb.SQLite(db)
}

// TestBeginWaitsForOtherConnections holds the write lock in another connection for
// longer than the database's busy_timeout.
func TestBeginWaitsForOtherConnections(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "chat.db")
	one, other := openSQLiteFile(t, name), openSQLiteFile(t, name)
	held := check.Must(other.Begin(t.Context()))(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	check.ErrorIs(t, check.Err(one.Begin(short)), context.DeadlineExceeded, "Begin of a locked database")
	check.Require(t, held.Rollback(t.Context()))
	inTx(t, one, chatdb.MigrateTx)
}

func openPostgres(t *testing.T) chatdb.DB {
	t.Helper()
	pool := check.Must(pgxpool.New(t.Context(), realtest.Postgres(t).Database(t)))(t)
	return chatdb.Postgres(pool)
}

func openMySQL(t *testing.T) chatdb.DB {
	t.Helper()
	db := check.Must(mysql.Open(realtest.MariaDB(t).Database(t)))(t)
	return chatdb.MySQL(db)
}

// inTx runs fn in a transaction that commits.
func inTx(t *testing.T, db chatdb.DB, fn func(ctx context.Context, tx chatdb.Tx) error) {
	t.Helper()
	check.Must(do(t, db, func(ctx context.Context, tx chatdb.Tx) (any, error) { return nil, fn(ctx, tx) }))(t)
}

func createGroup(t *testing.T, db chatdb.DB, n chatdb.NewGroup) (chatdb.Group, error) {
	t.Helper()
	return do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
		return new(chatdb.Writer).CreateGroup(ctx, tx, n)
	})
}

func create(t *testing.T, db chatdb.DB, n chatdb.NewGroup) chatdb.Group {
	t.Helper()
	return check.Must(createGroup(t, db, n))(t)
}

func TestGroupReadsBackAsItWasCreated(t *testing.T) {
	onEach(t, 3, func(t *testing.T, db chatdb.DB) {
		made := create(t, db, chatdb.NewGroup{OwnerID: 2, Name: "readers", Members: []int64{3, 1, 3, 2}})
		if want := []int64{1, 2, 3}; !cmp.Equal(made.MemberIDs(), want) {
			t.Errorf("members = %v, want %v", made.Members, want)
		}
		if want := (chatdb.Member{ID: 2, Name: "User 2", Owner: true}); made.Members[1] != want || made.LastChange != 1 {
			t.Errorf("the owner is %+v, want %+v; the last change is %d, want 1", made.Members[1], want, made.LastChange)
		}
		check.NoDiff(t, cmp.Diff(made, check.Must(chatdb.GroupByID(t.Context(), db, made.ID))(t)), "GroupByID")
		check.NoDiff(t, cmp.Diff([]chatdb.Group{made}, check.Must(chatdb.GroupsOf(t.Context(), db, 3))(t)), "GroupsOf")
	})
}

func TestGroupIsFoundByItsKeyOnly(t *testing.T) {
	onEach(t, 3, func(t *testing.T, db chatdb.DB) {
		create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "twin"})
		made := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "twin", Members: []int64{2}, Key: "k"})
		inTx(t, db, func(ctx context.Context, tx chatdb.Tx) error {
			_, joined, err := new(chatdb.Writer).AddMembers(ctx, tx, made.ID, 1, []int64{3, 2, 3})
			if want := []int64{3}; !cmp.Equal(joined, want) {
				t.Errorf("AddMembers = %v, want the new one, %v", joined, want)
			}
			return err
		})
		check.NoDiff(t, cmp.Diff(made, check.Must(chatdb.GroupByCreation(t.Context(), db, 1, "k"))(t)), "the group as it was created")
		for _, other := range []struct {
			owner int64
			key   string
		}{{2, "k"}, {1, "K"}, {1, ""}} {
			check.ErrorIs(t, check.Err(chatdb.GroupByCreation(t.Context(), db, other.owner, other.key)), chatdb.ErrNotFound, "GroupByCreation(%d, %q)", other.owner, other.key)
		}
		now, err := chatdb.GroupByID(t.Context(), db, made.ID)
		if want := []int64{1, 2, 3}; err != nil || !cmp.Equal(now.MemberIDs(), want) {
			t.Errorf("members now = %v, %v, want %v", now.Members, err, want)
		}
	})
}

func TestOneKeyOfAnOwnerHasOneGroup(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "a", Key: "k"})
		create(t, db, chatdb.NewGroup{OwnerID: 2, Name: "a", Key: "k"})
		check.Fails(t, check.Err(createGroup(t, db, chatdb.NewGroup{OwnerID: 1, Name: "b", Key: "k"})), "a second group with the key")
	})
}

func TestMessageIsFoundByItsKey(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		group := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew", Members: []int64{2}})
		sent := check.Must(do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
			return new(chatdb.Writer).Send(ctx, tx, chatdb.NewMessage{GroupID: group.ID, AuthorID: 2, Text: "hello", Key: "k"})
		}))(t)
		check.NoDiff(t, cmp.Diff(sent, check.Must(chatdb.MessageBySending(t.Context(), db, 2, "k"))(t)), "MessageBySending")
		check.ErrorIs(t, check.Err(chatdb.MessageBySending(t.Context(), db, 1, "k")), chatdb.ErrNotFound, "MessageBySending of another author")
	})
}

// TestConcurrentNumbersHaveNoGaps writes to one group from many goroutines, and rolls
// some of the transactions back.
func TestConcurrentNumbersHaveNoGaps(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		errUndone := errors.New("undone")
		group := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "busy"})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (any, error) {
					_, err := new(chatdb.Writer).Send(ctx, tx, chatdb.NewMessage{GroupID: group.ID, AuthorID: 1, Text: "hello"})
					if err == nil && i%4 == 0 {
						err = errUndone
					}
					return nil, err
				})
				if err != nil && !errors.Is(err, errUndone) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		sent, err := chatdb.MessagesAfter(t.Context(), db, group.ID, 0, 100)
		if err != nil || len(sent.Messages) != 15 || sent.Change != 16 {
			t.Fatalf("%d messages, change %d, %v; want 15, 16", len(sent.Messages), sent.Change, err)
		}
		for i, m := range sent.Messages {
			if m.Seq != int64(i+1) || m.Change != int64(i+2) { // the first change is the creation
				t.Errorf("message %d has number %d, change %d", i+1, m.Seq, m.Change)
			}
		}
	})
}

// TestTablesAreCreatedConcurrently creates the tables from several connections at once, as
// servers do that start together.
func TestTablesAreCreatedConcurrently(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) chatdb.DB{"postgres": openPostgres, "mariadb": openMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			t.Cleanup(func() { _ = db.Close() })
			var all sync.WaitGroup
			for range 4 { // the size of the pool
				all.Go(func() {
					_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (any, error) { return nil, chatdb.MigrateTx(ctx, tx) })
					check.NoError(t, err)
				})
			}
			all.Wait()
			id := databaseID(t, db)
			inTx(t, db, chatdb.MigrateTx)
			check.Equal(t, databaseID(t, db), id, "the ID of the database")
			other := openSQLite(t)
			t.Cleanup(func() { _ = other.Close() })
			inTx(t, other, chatdb.MigrateTx)
			if databaseID(t, other) == id {
				t.Error("two databases have the same ID")
			}
		})
	}
}

func databaseID(t *testing.T, db chatdb.DB) string {
	t.Helper()
	return check.Must(chatdb.DatabaseID(t.Context(), db))(t)
}
