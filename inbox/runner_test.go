package inbox_test

import (
	"context"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/store"
)

// An inbox in the mode Leased handles each message once over a store without
// transactions. An inbox in another mode handles none.
func TestInboxWithoutTransactions(t *testing.T) {
	t.Parallel()
	e := check.Must(semel.NewRunner(plainstore.New(plainstore.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	t.Cleanup(func() {
		check.NoError(t, e.Close(context.WithoutCancel(t.Context())), "Close")
	})
	runs := 0
	handle := func(in *inbox.Inbox[string]) (string, inbox.Result) {
		return inbox.Reply(t.Context(), in, e, newMessage("shop", "1", "a"), func(context.Context, string) (string, error) {
			runs++
			return "shipped", nil
		})
	}
	leased := newInbox(t, "ship", inbox.Options[string]{Mode: inbox.Leased, Policy: semel.Keyed()})
	for i := range 3 {
		reply, r := handle(leased)
		if reply != "shipped" || r.Decision != inbox.Ack || r.Duplicate != (i > 0) || r.Err != nil {
			t.Errorf("delivery %d: %q, %+v, want the reply of the only run", i+1, reply, r)
		}
	}
	check.Equal(t, runs, 1, "the message is handled")
	_, r := handle(newInbox(t, "pay", inbox.Options[string]{}))
	if f, ok := errtype.Find[*semel.FieldError](r.Err); !ok || f.Field != "Mode" || r.Decision == inbox.Ack {
		t.Errorf("a message of a transactional inbox: %+v, want an error about Mode", r)
	}
}
