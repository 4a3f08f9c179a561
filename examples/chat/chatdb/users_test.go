package chatdb_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// TestANameIsTakenOnce adds users of one name from several transactions at once.
func TestANameIsTakenOnce(t *testing.T) {
	onEach(t, 0, func(t *testing.T, db chatdb.DB) {
		var all sync.WaitGroup
		var mu sync.Mutex
		made := make(map[int64]bool)
		for range 4 {
			all.Go(func() {
				u, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.User, error) {
					return chatdb.AddUserTx(ctx, tx, userNumber(1))
				})
				if err != nil {
					if !errors.Is(err, chatdb.ErrNameTaken) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				made[u.ID] = true
			})
		}
		all.Wait()
		if len(made) != 1 {
			t.Errorf("the users %v have one name, want one", made)
		}
		n := userNumber(2)
		n.NameKey = "semel"
		if _, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.User, error) { return chatdb.AddUserTx(ctx, tx, n) }); !errors.Is(err, chatdb.ErrNameTaken) {
			t.Errorf("a user with the server's name: %v", err)
		}
	})
}

func TestUsersAreFound(t *testing.T) {
	onEach(t, 0, func(t *testing.T, db chatdb.DB) {
		for _, name := range []string{"ada", "adam", "bob", "ädo", "ad_x", "%"} {
			_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.User, error) {
				return chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: "The " + name, NameKey: name, PasswordHash: "hash of " + name, Key: name})
			})
			must(t, err)
		}
		for prefix, want := range map[string][]string{
			"ad": {"The ad_x", "The ada", "The adam"}, "ada": {"The ada", "The adam"}, "%": {"The %"}, "z": {}, "semel": {}, "ä": {"The ädo"},
		} {
			users, err := chatdb.UsersByPrefix(t.Context(), db, prefix, 9)
			got := []string{}
			for _, u := range users {
				got = append(got, u.Name)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q finds %q, %v; want %q", prefix, got, err, want)
			}
		}
		if users, err := chatdb.UsersByPrefix(t.Context(), db, "ad", 2); len(users) != 2 || err != nil {
			t.Errorf("limit 2: %v, %v", users, err)
		}
		u, hash, err := chatdb.Credentials(t.Context(), db, "bob")
		if found, err := chatdb.UserBySignUp(t.Context(), db, "bob"); err != nil || found != u {
			t.Errorf("UserBySignUp = %v, %v, want %v", found, err, u)
		}
		if err != nil || u.Name != "The bob" || hash != "hash of bob" {
			t.Errorf("Credentials = %v, %q, %v", u, hash, err)
		}
		for _, none := range []string{"Bob", "bob ", "semel"} {
			if _, _, err := chatdb.Credentials(t.Context(), db, none); !errors.Is(err, chatdb.ErrNotFound) {
				t.Errorf("Credentials(%q) = %v, want ErrNotFound", none, err)
			}
		}
		ids, err := chatdb.UserIDs(t.Context(), db, []chatdb.NewUser{{NameKey: "bob"}, {NameKey: "ada"}})
		if err != nil || !slices.Equal(ids, []int64{u.ID, u.ID - 2}) {
			t.Errorf("UserIDs = %v, %v", ids, err)
		}
		_, err = chatdb.UserIDs(t.Context(), db, []chatdb.NewUser{{NameKey: "bob"}, {Name: "Zoë", NameKey: "zoë"}, {Name: "Semel", NameKey: "semel"}})
		var unknown *chatdb.UnknownUsersError
		if !errors.As(err, &unknown) || !slices.Equal(unknown.Names, []string{"Zoë", "Semel"}) {
			t.Errorf("UserIDs = %v, want Zoë and Semel unknown", err)
		}
	})
}

func TestSessions(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		ann := chatdb.User{ID: 1, Name: "User 1"}
		open := func(u chatdb.User, n byte) chatdb.Session {
			s, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Session, error) {
				return chatdb.OpenSessionTx(ctx, tx, u, "phone", []byte{n})
			})
			must(t, err)
			return s
		}
		revoke := func(user int64, id string) {
			inTx(t, db, func(ctx context.Context, tx chatdb.Tx) error { return chatdb.RevokeSessionTx(ctx, tx, user, id) })
		}
		one, two := open(ann, 1), open(chatdb.User{ID: 2, Name: "User 2"}, 2)
		for _, read := range []func() (chatdb.Session, error){
			func() (chatdb.Session, error) { return chatdb.SessionByToken(t.Context(), db, []byte{1}) },
			func() (chatdb.Session, error) { return chatdb.SessionByID(t.Context(), db, one.ID) },
		} {
			got, err := read()
			if diff := cmp.Diff(one, got); err != nil || diff != "" {
				t.Errorf("the session: %v, difference (-opened +read):\n%s", err, diff)
			}
		}
		revoke(1, two.ID) // another user's
		if _, err := chatdb.SessionByToken(t.Context(), db, []byte{2}); err != nil {
			t.Errorf("a user has revoked another one's session: %v", err)
		}
		revoke(2, two.ID)
		if _, err := chatdb.SessionByToken(t.Context(), db, []byte{2}); !errors.Is(err, chatdb.ErrNotFound) {
			t.Errorf("a revoked session: %v", err)
		}
		for i := range chatdb.MaxSessions {
			open(ann, byte(100+i))
		}
		all, err := chatdb.SessionsOf(t.Context(), db, 1)
		if err != nil || len(all) != chatdb.MaxSessions || slices.ContainsFunc(all, func(s chatdb.Session) bool { return s.ID == one.ID }) {
			t.Errorf("%d sessions, %v; want %d, without the oldest", len(all), err, chatdb.MaxSessions)
		}
	})
}
