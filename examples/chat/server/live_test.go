package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
)

// openGroup opens a server with a group of ann's.
func openGroup(t *testing.T) (sessions, live.Identity, chatdb.Group) {
	t.Helper()
	s := openApp(t)
	ann := s.addUser(t, "ann")
	g := inTx(t, s, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
		return s.writer.CreateGroup(ctx, tx, chatdb.NewGroup{OwnerID: ann.User.ID, Name: "crew"})
	})
	return sessions{s}, live.Identity{User: ann.User.ID, Session: ann.ID}, g
}

// TestTransportsShareARecord sends a message over HTTP and repeats it without HTTP, and
// the other way round.
func TestTransportsShareARecord(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	user := chatdb.User{ID: caller.User}
	post := func(key string) (m chatdb.Message) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/groups/"+g.ID+"/messages", strings.NewReader(`{"text":"hello"}`))
		r.Header = http.Header{"Authorization": {"Bearer token of ann"}, "Idempotency-Key": {key}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		check.Equal(t, w.Code, http.StatusCreated, "POST")
		check.NoError(t, json.Unmarshal(w.Body.Bytes(), &m))
		return m
	}
	send := func(key string, repeated bool) chatdb.Message {
		m, replayed, err := messageService(s).sendOnce(t.Context(), user, key, g.ID, "hello")
		check.Result(replayed, err)(t, repeated, "sendOnce(%s) is a replay", key)
		return m
	}
	one := post("a")
	check.Equal(t, one.Seq, 1, "the first message")
	check.Equal(t, send("a", true), one, "the repeated message")
	two := send("b", false)
	check.Equal(t, two.Seq, 2, "the second message")
	check.Equal(t, post("b"), two, "the repeated message")
	refused := func(code string, user chatdb.User, text string) {
		t.Helper()
		_, _, err := messageService(s).sendOnce(t.Context(), user, "c", g.ID, text)
		check.Equal(t, problemOf(err).Code, code, "sendOnce of %d characters by %d", len(text), user.ID)
	}
	refused(codeInvalid, user, " ")
	refused(codeInvalid, user, strings.Repeat("x", maxText+1))
	refused(codeNotMember, chatdb.User{ID: 99}, "hello")
}

// TestPresenceIsForMembersOfTheSameGroups asks for the presence of a stranger, of a member of
// the same group, and again after that member has left.
func TestPresenceIsForMembersOfTheSameGroups(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	friend := s.addUser(t, "bob").User.ID
	s.addUser(t, "eve")
	inTx(t, s.app, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
		g, _, err := s.writer.AddMembers(ctx, tx, g.ID, caller.User, []int64{friend})
		return g, err
	})
	wantCoMembers := func(want ...int64) {
		t.Helper()
		got := check.Must(s.CoMembers(t.Context(), caller.User))(t)
		slices.Sort(got)
		check.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "the members of the same groups")
	}
	wantCoMembers(caller.User, friend)
	inTx(t, s.app, func(ctx context.Context, tx chatdb.Tx) (any, error) {
		return nil, s.writer.RemoveMember(ctx, tx, g.ID, caller.User, friend)
	})
	wantCoMembers(caller.User)
}

// TestLargeCatchUpsArePaged: a client whose kernel takes no more than a few kilobytes at once
// can receive the answer. A larger one would close the connection each time.
func TestLargeCatchUpsArePaged(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	for i := range 20 {
		check.Must(s.Send(t.Context(), caller, g.ID, fmt.Sprint("k", i), strings.Repeat("<", maxText)))(t)
	}
	missed, err := s.CatchUp(t.Context(), caller, g.ID, 0)
	if err != nil || missed.Recovered || len(missed.Messages) != 0 || missed.Change != 21 {
		t.Errorf("20 long messages: recovered %v, %d bytes up to change %d, %v; want no messages", missed.Recovered, len(missed.Messages), missed.Change, err)
	}
	missed, err = s.CatchUp(t.Context(), caller, g.ID, 20)
	if err != nil || !missed.Recovered || len(missed.Messages) == 0 {
		t.Errorf("one long message: recovered %v, %v", missed.Recovered, err)
	}
}

// TestReadMarkersOfStreams: the marker that members are told is the stored one.
func TestReadMarkersOfStreams(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	check.Must(s.Send(t.Context(), caller, g.ID, "k", "hello"))(t)
	for _, seq := range []int64{1 << 50, 0, -5} {
		if read, moved, err := s.MarkRead(t.Context(), caller, g.ID, seq); err != nil || read != 1 || moved { // it is the author
			t.Errorf("MarkRead up to %d = %d, %v, %v, want 1 and no move", seq, read, moved, err)
		}
	}
}

// TestRevokedSessionsDoNothing: the server refuses a stream of a revoked session, also if
// the event of the revocation was lost.
func TestRevokedSessionsDoNothing(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	s.revoke(t, caller.User, caller.Session)
	for name, call := range map[string]func() error{
		"CatchUp":  func() error { _, err := s.CatchUp(t.Context(), caller, g.ID, 0); return err },
		"Send":     func() error { _, err := s.Send(t.Context(), caller, g.ID, "k", "hello"); return err },
		"MarkRead": func() error { _, _, err := s.MarkRead(t.Context(), caller, g.ID, 0); return err },
	} {
		var refused *live.Error
		if err := call(); !errors.As(err, &refused) || refused.Code != live.Unauthenticated {
			t.Errorf("%s with a revoked session: %v, want %s", name, err, live.Unauthenticated)
		}
	}
}
