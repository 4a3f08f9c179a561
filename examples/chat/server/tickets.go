package server

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/onetime"
)

// issueTicket returns a ticket that opens one stream of a session. The user's ID is a part
// of it, because the tickets of each user have a limit of their own.
func (s *app) issueTicket(ctx context.Context, session chatdb.Session) (string, error) {
	user := session.User.ID
	token, err := s.operations.ticket.Issue(ctx, s.queue, semel.ScopeOf(strconv.FormatInt(user, 10)), ticketLife, ticket{session.ID})
	if errors.Is(err, onetime.ErrTooMany) {
		p := problem(codeTooMany, "", "There are %d tickets that were not used.", maxTickets)
		p.RetryAfter = ticketLife
		return "", p
	}
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(user, 10) + "." + token, nil
}

// redeem uses a ticket and returns its session. A ticket that was used, that has expired or
// whose session was revoked is refused.
func (s *app) redeem(ctx context.Context, text string) (chatdb.Session, error) {
	user, token, _ := strings.Cut(text, ".")
	if user == "" || token == "" {
		return chatdb.Session{}, wrongTicket()
	}
	id, again, err := onetime.ConsumeTx(ctx, s.operations.ticket, s.queue, semel.ScopeOf(user), token,
		func(_ context.Context, _ chatdb.Tx, t ticket) (string, error) { return t.SessionID, nil })
	if errors.Is(err, onetime.ErrUnknown) || errors.Is(err, onetime.ErrExpired) || again {
		return chatdb.Session{}, wrongTicket()
	}
	if err != nil {
		return chatdb.Session{}, err
	}
	session, err := chatdb.SessionByID(ctx, s.domain, id, s.config.oldest())
	if errors.Is(err, chatdb.ErrNotFound) {
		return chatdb.Session{}, wrongTicket()
	}
	return session, err
}

func wrongTicket() error {
	return problem(codeNoToken, "ticket", "The ticket is unknown, used or expired.")
}
