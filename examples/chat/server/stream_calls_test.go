package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// openLocal opens a server with a user and a session. These tests are in the package,
// because they call what streams call.
func openLocal(t *testing.T) (*app, chatdb.Session) {
	t.Helper()
	c, err := parseConfig([]string{"-db", "sqlite:" + filepath.Join(t.TempDir(), "chat.db")}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t.Context(), c, slog.New(slog.DiscardHandler), hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close(context.WithoutCancel(t.Context())) })
	var session chatdb.Session
	err = s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		u, err := chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: "ann", NameKey: "ann"})
		if err == nil {
			session, err = s.writer.OpenSession(ctx, tx, u, "phone", digestOf("token"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, session
}

func TestTicketsAreUsedOnce(t *testing.T) {
	t.Parallel()
	s, session := openLocal(t)
	issue := func() string {
		ticket, err := s.issueTicket(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	refused := func(why, ticket string) {
		t.Helper()
		if got, err := s.redeem(t.Context(), ticket); err == nil || problemOf(err).Code != codeNoToken {
			t.Errorf("%s: %+v, %v; want a refusal", why, got, err)
		}
	}
	ticket := issue()
	if got, err := s.redeem(t.Context(), ticket); err != nil || got != session {
		t.Errorf("the ticket is for %+v, %v; want %+v", got, err, session)
	}
	refused("used twice", ticket)
	refused("no ticket", "")
	refused("no user", ".abc")
	refused("unknown", "1.abc")
	refused("of another user", "2"+issue()[1:])

	late := issue()
	for i := range maxTickets {
		if _, err := s.issueTicket(t.Context(), session); err != nil {
			if p := problemOf(err); p.Code != codeTooMany || p.RetryAfter == 0 || i == 0 {
				t.Errorf("ticket %d: %v", i, err)
			}
			break
		}
		if i == maxTickets-1 {
			t.Error("a user has more than " + strconv.Itoa(maxTickets) + " unused tickets")
		}
	}
	err := s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		return s.writer.RevokeSession(ctx, tx, session.User.ID, session.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	refused("of a revoked session", late)
}

// TestTransportsShareARecord sends a message over HTTP and repeats it without HTTP, and
// the other way round.
func TestTransportsShareARecord(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	user := chatdb.User{ID: caller.User}
	post := func(key string) (m chatdb.Message) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/groups/"+g.ID+"/messages", strings.NewReader(`{"text":"hello"}`))
		r.Header = http.Header{"Authorization": {"Bearer token"}, "Idempotency-Key": {key}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if err := json.Unmarshal(w.Body.Bytes(), &m); w.Code != http.StatusCreated || err != nil {
			t.Errorf("POST = %d %s", w.Code, w.Body)
		}
		return m
	}
	send := func(key string, repeated bool) chatdb.Message {
		m, replayed, err := messageService(s).sendOnce(t.Context(), user, key, g.ID, "hello")
		if err != nil || replayed != repeated {
			t.Errorf("sendOnce(%s) = %+v, replayed %v, %v", key, m, replayed, err)
		}
		return m
	}
	if one, again := post("a"), send("a", true); one != again || one.Seq != 1 {
		t.Errorf("sent %+v, then %+v; want the same message", one, again)
	}
	if one, again := send("b", false), post("b"); one != again || one.Seq != 2 {
		t.Errorf("sent %+v, then %+v; want the same message", one, again)
	}
	for text, code := range map[string]string{" ": codeInvalid, strings.Repeat("x", maxText+1): codeInvalid} {
		if _, _, err := messageService(s).sendOnce(t.Context(), user, "c", g.ID, text); err == nil || problemOf(err).Code != code {
			t.Errorf("sendOnce of %d characters: %v, want %s", len(text), err, code)
		}
	}
	if _, _, err := messageService(s).sendOnce(t.Context(), chatdb.User{ID: 99}, "c", g.ID, "hello"); err == nil || problemOf(err).Code != codeNotMember {
		t.Errorf("sendOnce by a stranger: %v", err)
	}
}

// TestPresenceIsForMembersOfTheSameGroups asks for the presence of a stranger, of a member of
// the same group, and again after that member has left.
func TestPresenceIsForMembersOfTheSameGroups(t *testing.T) {
	t.Parallel()
	s, session := openLocal(t)
	own := session.User.ID
	var friend chatdb.User
	var g chatdb.Group
	err := s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		if friend, err = chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: "bob", NameKey: "bob"}); err != nil {
			return err
		}
		if _, err = chatdb.AddUserTx(ctx, tx, chatdb.NewUser{Name: "eve", NameKey: "eve"}); err != nil {
			return err
		}
		g, err = s.writer.CreateGroup(ctx, tx, chatdb.NewGroup{OwnerID: own, Name: "crew", Members: []int64{friend.ID}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want ...int64) {
		t.Helper()
		got, err := sessions{s}.CoMembers(t.Context(), own)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("CoMembers = %v, %v, want %v", got, err, want)
		}
	}
	check(own, friend.ID)
	err = s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		return s.writer.RemoveMember(ctx, tx, g.ID, own, friend.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	check(own)
}
