package server

import (
	"testing"

	"github.com/semelgo/semel/internal/check"
)

func TestTicketsAreUsedOnce(t *testing.T) {
	t.Parallel()
	s := openApp(t)
	session := s.addUser(t, "ann")
	issue := func() string {
		t.Helper()
		return check.Must(s.issueTicket(t.Context(), session))(t)
	}
	refused := func(why, ticket string) {
		t.Helper()
		_, err := s.redeem(t.Context(), ticket)
		check.Fails(t, err, "%s", why)
		check.Equal(t, problemOf(err).Code, codeNoToken, "%s", why)
	}
	ticket := issue()
	check.Result(s.redeem(t.Context(), ticket))(t, session, "the session of the ticket")
	refused("used twice", ticket)
	refused("no ticket", "")
	refused("no user", ".abc")
	refused("unknown", "1.abc")
	refused("of another user", "2"+issue()[1:])

	late := issue()
	var err error
	unused := 2
	for ; err == nil && unused <= maxTickets; unused++ {
		_, err = s.issueTicket(t.Context(), session)
	}
	if p := problemOf(err); p.Code != codeTooMany || p.RetryAfter == 0 || unused == 3 {
		t.Errorf("ticket %d: %v, want at most %d", unused, err, maxTickets)
	}
	s.revoke(t, session.User.ID, session.ID)
	refused("of a revoked session", late)
}
