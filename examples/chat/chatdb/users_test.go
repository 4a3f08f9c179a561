package chatdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
)

func TestUsersAreFound(t *testing.T) {
	onEach(t, 0, func(t *testing.T, db chatdb.DB) {
		for _, name := range []string{"ada", "adam", "bob", "ädo", "ad_x", "%"} {
			check.Must(do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.User, error) {
				return chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: "The " + name, NameKey: name, PasswordHash: "hash of " + name, Key: name})
			}))(t)
		}
		_, err := do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.User, error) {
			return chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: "Semel", NameKey: "semel"})
		})
		check.ErrorIs(t, err, chatdb.ErrNameTaken, "a user with the server's name")
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
		check.Result(chatdb.UserBySignUp(t.Context(), db, "bob"))(t, u, "UserBySignUp")
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
		var revoked []string
		w := chatdb.Writer{Revoked: func(_ context.Context, _ chatdb.Tx, user int64, session string) error {
			revoked = append(revoked, fmt.Sprint(user, session))
			return nil
		}}
		open := func(u chatdb.User, n byte) chatdb.Session {
			s := check.Must(do(t, db, func(ctx context.Context, tx chatdb.Tx) (chatdb.Session, error) {
				return w.OpenSession(ctx, tx, u, "phone", []byte{n})
			}))(t)
			return s
		}
		revoke := func(user int64, id string) {
			inTx(t, db, func(ctx context.Context, tx chatdb.Tx) error { return w.RevokeSession(ctx, tx, user, id) })
		}
		one, two := open(ann, 1), open(chatdb.User{ID: 2, Name: "User 2"}, 2)
		for _, read := range []func() (chatdb.Session, error){
			func() (chatdb.Session, error) { return chatdb.SessionByToken(t.Context(), db, []byte{1}, time.Time{}) },
			func() (chatdb.Session, error) { return chatdb.SessionByID(t.Context(), db, one.ID, time.Time{}) },
		} {
			check.NoDiff(t, cmp.Diff(one, check.Must(read())(t)), "the session")
		}
		revoke(1, two.ID) // another user's
		check.NoError(t, check.Err(chatdb.SessionByToken(t.Context(), db, []byte{2}, time.Time{})), "another user's session after RevokeSession")
		revoke(2, two.ID)
		check.ErrorIs(t, check.Err(chatdb.SessionByToken(t.Context(), db, []byte{2}, time.Time{})), chatdb.ErrNotFound, "a revoked session")
		if live, err := chatdb.OpenSessions(t.Context(), db, []string{one.ID, two.ID, "unknown"}, time.Time{}); err != nil || !slices.Equal(live, []string{one.ID}) {
			t.Errorf("OpenSessions = %v, %v, want the first", live, err)
		}
		revoke(2, two.ID) // again
		for i := range chatdb.MaxSessions {
			open(ann, byte(100+i))
		}
		all, err := chatdb.SessionsOf(t.Context(), db, 1, time.Time{})
		if err != nil || len(all) != chatdb.MaxSessions || slices.ContainsFunc(all, func(s chatdb.Session) bool { return s.ID == one.ID }) {
			t.Errorf("%d sessions, %v; want %d, without the oldest", len(all), err, chatdb.MaxSessions)
		}
		check.NoDiff(t, cmp.Diff([]string{fmt.Sprint(2, two.ID), fmt.Sprint(1, one.ID)}, revoked), "revoked")
		// Sessions that are too old are as if they were revoked.
		last := all[len(all)-1]
		for after, want := range map[time.Time]int{last.CreatedAt.Add(-time.Microsecond): 1, last.CreatedAt: 0} {
			_, byID := chatdb.SessionByID(t.Context(), db, last.ID, after)
			_, byToken := chatdb.SessionByToken(t.Context(), db, []byte{byte(99 + chatdb.MaxSessions)}, after)
			list, err := chatdb.SessionsOf(t.Context(), db, 1, after)
			live, failed := chatdb.OpenSessions(t.Context(), db, []string{last.ID}, after)
			if gone := errors.Is(byID, chatdb.ErrNotFound) && errors.Is(byToken, chatdb.ErrNotFound); gone != (want == 0) ||
				len(list) != want || len(live) != want || errors.Join(err, failed) != nil {
				t.Errorf("opened after %v: %v, %v, %v, %v, %v, %v; want %d sessions", after, byID, byToken, list, live, err, failed, want)
			}
		}
	})
}
