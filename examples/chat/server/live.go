package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/semelhttp"
)

// sessions is the application of package live: it authenticates streams, reads what their
// clients have missed, and stores what they send.
type sessions struct{ *app }

var _ live.Backend = sessions{}

// Authenticate implements [live.Backend].
func (s sessions) Authenticate(ctx context.Context, c live.Credentials) (live.Identity, error) {
	find, secret := s.sessionByToken, c.Token
	if c.Ticket != "" {
		find, secret = s.redeem, c.Ticket
	}
	session, err := find(ctx, secret)
	if err != nil {
		return live.Identity{}, streamError(err)
	}
	return live.Identity{User: session.User.ID, Name: session.User.Name, Session: session.ID}, nil
}

// CatchUp implements [live.Backend].
func (s sessions) CatchUp(ctx context.Context, caller live.Identity, group string, after int64) (live.CatchUp, error) {
	if _, err := s.current(ctx, caller); err != nil {
		return live.CatchUp{}, err
	}
	if err := chatdb.CheckMember(ctx, s.domain, group, caller.User); err != nil {
		return live.CatchUp{}, streamError(err)
	}
	page, err := chatdb.MessagesChangedAfter(ctx, s.domain, group, after, maxPage)
	if err != nil {
		return live.CatchUp{}, streamError(err)
	}
	missed := live.CatchUp{Recovered: len(page.Messages) < maxPage, Change: page.Change}
	if missed.Recovered {
		missed.Messages, err = json.Marshal(page.Messages)
	}
	if len(missed.Messages) > maxCatchUp {
		missed.Recovered, missed.Messages = false, nil
	}
	return missed, err
}

// maxCatchUp limits the messages of one answer, in bytes. A socket closes a client for which more
// than 256 KiB waits, so a larger answer could close the client each time that it subscribes.
const maxCatchUp = 64 << 10

// Send implements [live.Backend]. It runs the operation of the HTTP endpoint, so a client may
// retry over HTTP with the same key.
func (s sessions) Send(ctx context.Context, caller live.Identity, group, key, text string) (json.RawMessage, error) {
	session, err := s.current(ctx, caller)
	if err != nil {
		return nil, err
	}
	m, _, err := messageService(s).sendOnce(ctx, session.User, key, group, text)
	if p := semelhttp.ProblemOf(err); p != nil {
		return nil, streamError(fmt.Errorf("%w: %w", p, err))
	}
	return json.Marshal(m)
}

// OpenSessions implements [live.Backend].
func (s sessions) OpenSessions(ctx context.Context, ids []string) ([]string, error) {
	open, err := chatdb.OpenSessions(ctx, s.domain, ids, s.config.oldest())
	return open, streamError(err)
}

// CoMembers implements [live.Backend].
func (s sessions) CoMembers(ctx context.Context, user int64) ([]int64, error) {
	known, err := chatdb.CoMembers(ctx, s.domain, user)
	return known, streamError(err)
}

// MarkRead implements [live.Backend].
func (s sessions) MarkRead(ctx context.Context, caller live.Identity, group string, seq int64) (int64, bool, error) {
	if _, err := s.current(ctx, caller); err != nil {
		return 0, false, err
	}
	read, moved, err := groupService(s).markRead(ctx, group, caller.User, seq)
	return read, moved, streamError(err)
}

// current returns the caller's session, unless it was revoked.
func (s sessions) current(ctx context.Context, caller live.Identity) (chatdb.Session, error) {
	session, err := chatdb.SessionByID(ctx, s.domain, caller.Session, s.config.oldest())
	if errors.Is(err, chatdb.ErrNotFound) {
		return session, &live.Error{Code: live.Unauthenticated, Message: "The session was revoked."}
	}
	return session, streamError(err)
}

// streamError returns the error for a stream's client: that of the HTTP response. A cause
// that the client does not receive stays wrapped, for the log.
func streamError(err error) error {
	if err == nil {
		return nil
	}
	p := problemOf(err)
	temporary := p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests || p.RetryAfter > 0
	told := &live.Error{Code: p.Code, Message: p.Detail, Temporary: temporary, RetryAfter: p.RetryAfter.Milliseconds()}
	if p.Code == codeUnavailable && semel.RetryAfter(err) == 0 {
		return fmt.Errorf("%w: %w", told, err)
	}
	return told
}

// reconnectWithin is the time in which the clients of a server that stops reconnect.
const reconnectWithin = 5 * time.Second
