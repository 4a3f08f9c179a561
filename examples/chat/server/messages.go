package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// defaultPage and maxPage are numbers of messages in one response.
const (
	defaultPage = 50
	maxPage     = 200
)

// sendMessage is the endpoint that sends a message once per key.
func (s *app) sendMessage() (http.Handler, error) {
	return semelhttp.Handle(semelhttp.Endpoint[messageRequest, chatdb.Message]{
		Operation: s.operations.sendMessage,
		Decode:    s.decodeMessage,
		Run:       s.runSendMessage,
		Render:    renderMessage,
	}, s.keyed())
}

// decodeMessage also checks membership, before a key is claimed. Users never
// leave a group, so the check stays true.
func (s *app) decodeMessage(r *http.Request) (messageRequest, error) {
	g, err := s.groupOfMember(r)
	if err != nil {
		return messageRequest{}, fmt.Errorf("%w: %w", problemOf(err), err)
	}
	in := messageRequest{GroupID: g.ID}
	if p := readObject(r, textField("text", maxText, &in.Text)); p != nil {
		return messageRequest{}, p
	}
	return in, nil
}

func (s *app) runSendMessage(ctx context.Context, c semel.Call, in messageRequest) (chatdb.Message, bool, error) {
	n := chatdb.NewMessage{GroupID: in.GroupID, AuthorID: userIn(ctx).ID, Text: in.Text}
	return once(ctx, s, c, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
		if s.config.mode == modeApart {
			n.Key = c.Key()
			if m, err := chatdb.MessageBySending(ctx, tx, n.AuthorID, n.Key); !errors.Is(err, chatdb.ErrNotFound) {
				return m, err
			}
		}
		return chatdb.SendMessageTx(ctx, tx, n)
	})
}

func renderMessage(w http.ResponseWriter, _ *http.Request, m chatdb.Message) {
	w.Header().Set("Location", fmt.Sprintf("/v1/groups/%s/messages?after=%d&limit=1", m.GroupID, m.Seq-1))
	writeJSON(w, http.StatusCreated, m)
}

func (s *app) listMessages(r *http.Request) (any, error) {
	after, err := wholeNumber(r, "after", 0, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	limit, err := wholeNumber(r, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return nil, err
	}
	g, err := s.groupOfMember(r)
	if err != nil {
		return nil, err
	}
	messages, err := chatdb.MessagesAfter(r.Context(), s.domain, g.ID, after, int(limit))
	if err != nil {
		return nil, err
	}
	return map[string]any{"messages": messages}, nil
}

// wholeNumber reads an integer parameter of the query.
func wholeNumber(r *http.Request, name string, otherwise, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, problem(codeInvalid, name, "%q must be a whole number from %d to %d.", name, least, most)
	}
	return n, nil
}
