package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelhttp"
)

const importOperation = "import_message"

// redelivery is how long after its first delivery a message may be delivered
// again, by the broker or by an operator who moves it back from the dead letters.
// Records must be kept for longer.
const redelivery = 7 * 24 * time.Hour

// imported is the body of a message that another program has published.
type imported struct {
	Group  string `json:"group"`
	Sender int64  `json:"sender"`
	Body   string `json:"body"`
}

// newInbox defines the import. The chat's message and the record are in the same
// database, so one transaction writes both.
func newInbox(c config) (*inbox.Inbox[imported], error) {
	o := inbox.Options[imported]{
		Group: "chat", Retention: c.retention, Retry: semel.Retry{Delay: doubled},
		Wait: time.Second, // a concurrent duplicate waits for the first one
	}
	if c.amqp != "" {
		o.Redelivery = redelivery
	}
	return inbox.New(importOperation, o)
}

// readImported reads the body of a message. Its problem names the field.
func readImported(text []byte) (imported, *semelhttp.Problem) {
	var in imported
	p := readFields(text,
		textField("group", maxName, &in.Group), userField("sender", &in.Sender), textField("body", maxText, &in.Body))
	return in, p
}

// importMessage returns the function that writes a message as one of its sender. A sender
// that is no member is a final failure; every other error is retried.
func importMessage(w chatdb.Writer) importFunc {
	return func(ctx context.Context, tx chatdb.Tx, in imported) error {
		_, err := w.Send(ctx, tx, chatdb.NewMessage{GroupID: in.Group, AuthorID: in.Sender, Text: in.Body})
		if errors.Is(err, chatdb.ErrNotMember) || errors.Is(err, chatdb.ErrNotFound) {
			return semel.Final(&semel.Failure{
				Code:    codeNotMember,
				Message: fmt.Sprintf("User %d does not belong to the group %s, or there is no such group.", in.Sender, in.Group),
			})
		}
		return err
	}
}
