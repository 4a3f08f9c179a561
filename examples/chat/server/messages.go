package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// messageService has the endpoints of messages.
type messageService struct{ *app }

// defaultPage and maxPage are numbers of messages in one response.
const (
	defaultPage = 50
	maxPage     = 200
)

// send is the endpoint that sends a message once per key.
func (s messageService) send() (http.Handler, error) {
	return semelhttp.Handle(semelhttp.Endpoint[messageRequest, chatdb.Message]{
		Operation: s.operations.sendMessage,
		// The input has the group. A client may repeat the request over another transport,
		// which has no path.
		IgnoreTarget: true,
		Decode:       s.decode,
		Run: func(ctx context.Context, c semel.Call, in messageRequest) (chatdb.Message, bool, error) {
			return s.runSend(ctx, c, userIn(ctx), in)
		},
		Render: renderMessage,
	}, s.keyed())
}

// decode also checks membership before a key is claimed, so that a user that is not a
// member receives no replay. The transaction checks it again, because the user may be
// removed meanwhile.
func (s messageService) decode(r *http.Request) (messageRequest, error) {
	if err := s.checkMember(r); err != nil {
		return messageRequest{}, fmt.Errorf("%w: %w", problemOf(err), err)
	}
	in := messageRequest{GroupID: r.PathValue("id")}
	if p := readObject(r, textField(fieldText, maxText, &in.Text)); p != nil {
		return messageRequest{}, p
	}
	return in, nil
}

// sendOnce sends a message without HTTP. It is the same operation, with the same record.
func (s messageService) sendOnce(ctx context.Context, u chatdb.User, key, group, text string) (chatdb.Message, bool, error) {
	if err := chatdb.CheckMember(ctx, s.domain, group, u.ID); err != nil {
		return chatdb.Message{}, false, problemOf(err)
	}
	if wrong := wrongText(text, maxText); wrong != "" {
		return chatdb.Message{}, false, problem(codeInvalid, fieldText, "The field %q %s.", fieldText, wrong)
	}
	in := messageRequest{GroupID: group, Text: text}
	return s.runSend(ctx, s.operations.sendMessage.Call(scopeOf(u), key, in), u, in)
}

func (s messageService) runSend(ctx context.Context, c semel.Call, u chatdb.User, in messageRequest) (chatdb.Message, bool, error) {
	n := chatdb.NewMessage{GroupID: in.GroupID, AuthorID: u.ID, Text: in.Text, ClientID: c.Key(), MarkRead: true}
	return once(ctx, s.app, c, func(ctx context.Context, tx chatdb.Tx) (chatdb.Message, error) {
		if s.config.mode == modeApart {
			n.Key = c.Key()
			if m, err := chatdb.MessageBySending(ctx, tx, n.AuthorID, n.Key); !errors.Is(err, chatdb.ErrNotFound) {
				return m, err
			}
		}
		return s.writer.Send(ctx, tx, n)
	})
}

func renderMessage(w http.ResponseWriter, _ *http.Request, m chatdb.Message) {
	w.Header().Set("Location", fmt.Sprintf("/v1/groups/%s/messages?after=%d&limit=1", m.GroupID, m.Seq-1))
	writeJSON(w, http.StatusCreated, m)
}

// list returns the newest messages, those before or after a message, or those that were
// written after a change.
func (s messageService) list(r *http.Request) (any, error) {
	limit, err := wholeNumber(r, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return nil, err
	}
	read, from, given := chatdb.MessagesBefore, int64(math.MaxInt64), ""
	for _, way := range []struct {
		name string
		read func(ctx context.Context, q chatdb.Querier, group string, from int64, limit int) (chatdb.Page, error)
	}{{"before", chatdb.MessagesBefore}, {"after", chatdb.MessagesAfter}, {"changed_after", chatdb.MessagesChangedAfter}} {
		if !r.URL.Query().Has(way.name) {
			continue
		}
		if given != "" {
			return nil, problem(codeInvalid, way.name, "Give %q or %q.", given, way.name)
		}
		read, given = way.read, way.name
		if from, err = wholeNumber(r, given, from, 0, 1<<53); err != nil {
			return nil, err
		}
	}
	if err := s.checkMember(r); err != nil {
		return nil, err
	}
	return read(r.Context(), s.domain, r.PathValue("id"), from, int(limit))
}

func (s messageService) edit(r *http.Request) (any, error) {
	var text string
	if p := readObject(r, textField(fieldText, maxText, &text)); p != nil {
		return nil, p
	}
	return s.change(r, func(ctx context.Context, tx chatdb.Tx, seq int64) (chatdb.Message, error) {
		return s.writer.Edit(ctx, tx, r.PathValue("id"), seq, userIn(ctx).ID, text)
	})
}

func (s messageService) remove(r *http.Request) (any, error) {
	return s.change(r, func(ctx context.Context, tx chatdb.Tx, seq int64) (chatdb.Message, error) {
		return s.writer.Delete(ctx, tx, r.PathValue("id"), seq, userIn(ctx).ID)
	})
}

// change runs a write to the message in the path.
func (s messageService) change(r *http.Request, write func(ctx context.Context, tx chatdb.Tx, seq int64) (chatdb.Message, error)) (any, error) {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil {
		return nil, problem(codeNotFound, "seq", "There is no such message.")
	}
	var m chatdb.Message
	err = s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		m, err = write(ctx, tx, seq)
		return err
	})
	return m, err
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
