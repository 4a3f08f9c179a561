package server

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// TestTicketsAreUsedOnce is in the package because the streams, which use tickets, need
// more than a ticket.
func TestTicketsAreUsedOnce(t *testing.T) {
	t.Parallel()
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
			session, err = chatdb.OpenSessionTx(ctx, tx, u, "phone", []byte("digest"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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
	err = s.transact(t.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		return chatdb.RevokeSessionTx(ctx, tx, session.User.ID, session.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	refused("of a revoked session", late)
}
