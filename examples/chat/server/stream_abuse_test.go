package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/live"
)

// openGroup opens a server with a group of the session's user.
func openGroup(t *testing.T) (sessions, live.Identity, chatdb.Group) {
	t.Helper()
	s, session := openLocal(t)
	var g chatdb.Group
	err := s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		g, err = s.writer.CreateGroup(ctx, tx, chatdb.NewGroup{OwnerID: session.User.ID, Name: "crew"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sessions{s}, live.Identity{User: session.User.ID, Session: session.ID}, g
}

// TestLargeCatchUpsArePaged: a client whose kernel takes no more than a few kilobytes at once
// can receive the answer. A larger one would close the connection each time.
func TestLargeCatchUpsArePaged(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	for i := range 20 {
		if _, err := s.Send(t.Context(), caller, g.ID, fmt.Sprint("k", i), strings.Repeat("<", maxText)); err != nil {
			t.Fatal(err)
		}
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
	if _, err := s.Send(t.Context(), caller, g.ID, "k", "hello"); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int64{1 << 50, 0, -5} {
		if read, err := s.MarkRead(t.Context(), caller, g.ID, seq); err != nil || read != 1 {
			t.Errorf("MarkRead up to %d = %d, %v, want 1", seq, read, err)
		}
	}
}

// TestRevokedSessionsDoNothing: a stream whose revocation was lost is refused.
func TestRevokedSessionsDoNothing(t *testing.T) {
	t.Parallel()
	s, caller, g := openGroup(t)
	err := s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		return s.writer.RevokeSession(ctx, tx, caller.User, caller.Session)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"CatchUp":  func() error { _, err := s.CatchUp(t.Context(), caller, g.ID, 0); return err },
		"Send":     func() error { _, err := s.Send(t.Context(), caller, g.ID, "k", "hello"); return err },
		"MarkRead": func() error { _, err := s.MarkRead(t.Context(), caller, g.ID, 0); return err },
	} {
		var refused *live.Error
		if err := call(); !errors.As(err, &refused) || refused.Code != live.Unauthenticated {
			t.Errorf("%s with a revoked session: %v, want %s", name, err, live.Unauthenticated)
		}
	}
}
