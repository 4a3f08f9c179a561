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
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/examples/chat/chatdb"
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
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "chat.db"))
	if err != nil {
		t.Fatal(err)
	}
	return chatdb.SQLite(db)
}

func openSQLiteFile(t *testing.T, name string) chatdb.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+name+"?_txlock=immediate&_pragma=busy_timeout(10)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return chatdb.SQLite(db)
}

// TestBeginWaitsForOtherConnections holds the write lock in another connection for
// longer than the database's busy_timeout.
func TestBeginWaitsForOtherConnections(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "chat.db")
	one, other := openSQLiteFile(t, name), openSQLiteFile(t, name)
	held, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := one.Begin(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Begin of a locked database: %v, want the end of its context", err)
	}
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	inTx(t, one, chatdb.MigrateTx)
}

func openPostgres(t *testing.T) chatdb.DB {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), realtest.Postgres(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	return chatdb.Postgres(pool)
}

func openMySQL(t *testing.T) chatdb.DB {
	t.Helper()
	db, err := mysql.Open(realtest.MariaDB(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	return chatdb.MySQL(db)
}

// inTx runs fn in a transaction that commits.
func inTx(t *testing.T, db chatdb.DB, fn func(ctx context.Context, tx chatdb.Tx) error) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if err := fn(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, db chatdb.DB, n chatdb.NewGroup) chatdb.Group {
	t.Helper()
	var g chatdb.Group
	inTx(t, db, func(ctx context.Context, tx chatdb.Tx) (err error) {
		g, err = new(chatdb.Writer).CreateGroup(ctx, tx, n)
		return err
	})
	return g
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
		got, err := chatdb.GroupByID(t.Context(), db, made.ID)
		if diff := cmp.Diff(made, got); err != nil || diff != "" {
			t.Errorf("GroupByID: %v, difference (-created +read):\n%s", err, diff)
		}
		list, err := chatdb.GroupsOf(t.Context(), db, 3)
		if diff := cmp.Diff([]chatdb.Group{made}, list); err != nil || diff != "" {
			t.Errorf("GroupsOf: %v, difference (-created +read):\n%s", err, diff)
		}
	})
}

func TestUnknownMembersAreNamed(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err = new(chatdb.Writer).CreateGroup(t.Context(), tx, chatdb.NewGroup{OwnerID: 1, Name: "g", Members: []int64{9, 1, 7, 9}})
		var unknown *chatdb.UnknownUsersError
		if !errors.As(err, &unknown) || !cmp.Equal(unknown.IDs, []int64{7, 9}) {
			t.Errorf("CreateGroup = %v, want unknown users 7 and 9", err)
		}
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
		got, err := chatdb.GroupByCreation(t.Context(), db, 1, "k")
		if diff := cmp.Diff(made, got); err != nil || diff != "" {
			t.Errorf("the group as it was created: %v, difference (-created +found):\n%s", err, diff)
		}
		for _, other := range []struct {
			owner int64
			key   string
		}{{2, "k"}, {1, "K"}, {1, ""}} {
			if _, err := chatdb.GroupByCreation(t.Context(), db, other.owner, other.key); !errors.Is(err, chatdb.ErrNotFound) {
				t.Errorf("GroupByCreation(%d, %q) = %v, want ErrNotFound", other.owner, other.key, err)
			}
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
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := new(chatdb.Writer).CreateGroup(t.Context(), tx, chatdb.NewGroup{OwnerID: 1, Name: "b", Key: "k"}); err == nil {
			t.Error("a second group under the key was let in")
		}
	})
}

func TestMessagesAreNumberedWithoutGaps(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		one := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "one", Members: []int64{2}})
		two := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "two"})
		send := func(n chatdb.NewMessage) (m chatdb.Message) {
			inTx(t, db, func(ctx context.Context, tx chatdb.Tx) (err error) {
				m, err = new(chatdb.Writer).Send(ctx, tx, n)
				return err
			})
			return m
		}
		var sent []chatdb.Message
		for range 3 {
			send(chatdb.NewMessage{GroupID: two.ID, AuthorID: 1, Text: "elsewhere"})
			sent = append(sent, send(chatdb.NewMessage{GroupID: one.ID, AuthorID: 1, Text: "hello", Key: ""}))
		}
		got, err := chatdb.MessagesAfter(t.Context(), db, one.ID, 1, 10)
		if diff := cmp.Diff(sent[1:], got.Messages); err != nil || diff != "" {
			t.Errorf("MessagesAfter 1: %v, difference (-sent +read):\n%s", err, diff)
		}
		for i, m := range sent {
			if m.Seq != int64(i+1) {
				t.Errorf("message %d has seq %d", i+1, m.Seq)
			}
		}
		keyed := send(chatdb.NewMessage{GroupID: one.ID, AuthorID: 2, Text: "hello", Key: "k"})
		found, err := chatdb.MessageBySending(t.Context(), db, 2, "k")
		if diff := cmp.Diff(keyed, found); err != nil || diff != "" {
			t.Errorf("MessageBySending: %v, difference (-sent +found):\n%s", err, diff)
		}
	})
}

// TestConcurrentNumbersHaveNoGaps writes to one group from many goroutines, and rolls
// some of the transactions back.
func TestConcurrentNumbersHaveNoGaps(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		group := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "busy"})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				tx, err := db.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = tx.Rollback(t.Context()) }()
				_, err = new(chatdb.Writer).Send(t.Context(), tx, chatdb.NewMessage{GroupID: group.ID, AuthorID: 1, Text: "hello"})
				if err == nil && i%4 > 0 {
					err = tx.Commit(t.Context())
				}
				if err != nil {
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
					tx, err := db.Begin(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = tx.Rollback(t.Context()) }()
					if err := errors.Join(chatdb.MigrateTx(t.Context(), tx), tx.Commit(t.Context())); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestTransactionIsOfItsOwnDatabase(t *testing.T) {
	onEach(t, 0, func(t *testing.T, db chatdb.DB) {
		inTx(t, db, func(_ context.Context, tx chatdb.Tx) error {
			_, lite := chatdb.Beneath[*sql.Tx](tx)
			_, post := chatdb.Beneath[pgx.Tx](tx)
			if lite == post {
				t.Errorf("beneath is a *sql.Tx: %v, a pgx.Tx: %v; want one of them", lite, post)
			}
			return nil
		})
	})
}
