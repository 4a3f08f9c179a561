package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/examples/chat/chatdb"
)

// newSession is the response to a log-in. Only this response contains the token.
type newSession struct {
	Token   string         `json:"token"`
	Session chatdb.Session `json:"session"`
	User    chatdb.User    `json:"user"`
}

// logIn opens a session. A wrong name and a wrong password have the same response, and take
// the same time.
func (s userService) logIn(r *http.Request) (any, error) {
	var text, password, device string
	unnamed := textField("device", maxName, &device)
	unnamed.optional = true
	if p := readObject(r, anyText(fieldName, &text), anyText(fieldPassword, &password), unnamed); p != nil {
		return nil, p
	}
	name, err := accounts.ParseName(text)
	if err != nil {
		return nil, wrongCredentials()
	}
	address := s.config.addressOf(r)
	if p := s.limit(s.logInsFrom, address); p != nil {
		return nil, p
	}
	if p := s.limit(s.logIns, address+" "+name.Key); p != nil {
		return nil, p
	}
	u, hash, err := chatdb.Credentials(r.Context(), s.domain, name.Key)
	if err != nil && !errors.Is(err, chatdb.ErrNotFound) {
		return nil, err
	}
	ok, err := s.hasher.Check(r.Context(), hash, password)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, wrongCredentials()
	}
	opened := newSession{User: u}
	token, digest := newToken()
	opened.Token = token
	err = s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		opened.Session, err = s.writer.OpenSession(ctx, tx, u, device, digest)
		return err
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func wrongCredentials() error {
	return problem(codeCredentials, "", "There is no user with this name and this password.")
}

// anyText is a text that is not validated: an invalid name or password is simply not found.
func anyText(name string, into *string) field {
	return field{name: name, set: func(value json.RawMessage) string {
		if value[0] != '"' || json.Unmarshal(value, into) != nil {
			return "must be a text"
		}
		if n := utf8.RuneCountInString(*into); n == 0 || n > maxCredential {
			return fmt.Sprintf("must have 1 to %d characters", maxCredential)
		}
		return ""
	}}
}

// maxCredential is the longest name or password of a log-in, in characters.
const maxCredential = 1000

// listedSession is a session in the list of its user.
type listedSession struct {
	chatdb.Session

	Current bool `json:"current"` // of this request
}

func (s userService) listSessions(r *http.Request) (any, error) {
	own := sessionIn(r.Context())
	sessions, err := chatdb.SessionsOf(r.Context(), s.domain, own.User.ID, s.config.oldest())
	if err != nil {
		return nil, err
	}
	listed := make([]listedSession, len(sessions))
	for i, session := range sessions {
		listed[i] = listedSession{session, session.ID == own.ID}
	}
	return map[string]any{"sessions": listed}, nil
}

// oldest is the time at which sessions were opened that are too old now.
func (c *config) oldest() time.Time {
	if c.sessionAge == 0 {
		return time.Time{}
	}
	return time.Now().Add(-c.sessionAge)
}

// revoke ends a session of the user. A session that has ended already is no error.
func (s userService) revoke(r *http.Request) (any, error) {
	own, id := sessionIn(r.Context()), r.PathValue("id")
	if id == "current" {
		id = own.ID
	}
	return nil, s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		return s.writer.RevokeSession(ctx, tx, own.User.ID, id)
	})
}

// ticketLife is how long a ticket can be used.
const ticketLife = 30 * time.Second

// newTicket issues a ticket, with which a browser opens a stream without a header.
func (s userService) newTicket(r *http.Request) (any, error) {
	ticket, err := s.issueTicket(r.Context(), sessionIn(r.Context()))
	if err != nil {
		return nil, err
	}
	return map[string]any{"ticket": ticket, "expires_in": int(ticketLife.Seconds())}, nil
}
