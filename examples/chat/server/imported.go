package server

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelhttp"
)

const importOperation = "import_message"

// redelivery is how long after it first came an imported message may come again:
// from the broker, or put back from the dead letters by a person within a week.
// Records have to be kept for longer.
const redelivery = 7 * 24 * time.Hour

// imported is a message that another program has put into the queue.
type imported struct {
	Group  string `json:"group"`
	Sender int64  `json:"sender"`
	Body   string `json:"body"`
}

// newInbox declares the import. The message it writes is in the record's own
// database, so one transaction does both.
func newInbox(c config) (*inbox.Inbox[imported], error) {
	o := inbox.Options[imported]{
		Group: "chat", Retention: c.retention, Retry: semel.Retry{Delay: doubled},
		Wait: time.Second, // a duplicate at the same time need not come again
	}
	if c.amqp != "" {
		o.Redelivery = redelivery
	}
	return inbox.New(importOperation, o)
}

// readImported reads a message. What is wrong with it names the field.
func readImported(text []byte) (imported, *semelhttp.Problem) {
	var in imported
	p := readFields(text,
		textField("group", maxName, &in.Group), userField("sender", &in.Sender), textField("body", maxText, &in.Body))
	return in, p
}

// importMessage writes an imported message as an ordinary one of its sender. That
// the sender may not write there is for good; whatever else goes wrong is tried
// again.
func importMessage(ctx context.Context, tx chatdb.Tx, in imported) error {
	member, err := chatdb.IsMember(ctx, tx, in.Group, in.Sender)
	if err != nil {
		return err
	}
	if !member {
		return semel.Final(&semel.Failure{
			Code:    codeNotMember,
			Message: fmt.Sprintf("User %d does not belong to the group %s, or there is no such group.", in.Sender, in.Group),
		})
	}
	_, err = chatdb.SendMessageTx(ctx, tx, chatdb.NewMessage{GroupID: in.Group, AuthorID: in.Sender, Text: in.Body})
	return err
}
