package semelwatermill_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store"
)

// The middleware handles each message once over a store without transactions.
func TestMiddlewareWithoutTransactions(t *testing.T) {
	t.Parallel()
	e := check.Must(semel.NewRunner(plainstore.New(plainstore.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	t.Cleanup(func() {
		check.NoError(t, e.Close(context.WithoutCancel(t.Context())), "Close")
	})
	once := check.Must(semelwatermill.Middleware(newInbox(t, inbox.Options[semel.Raw]{Mode: inbox.Leased}), e, semelwatermill.Options{
		Name: semelwatermill.FromMetadata("producer", "id"), MaxWait: time.Millisecond,
	}))(t)
	runs := 0
	handler := once(func(*message.Message) ([]*message.Message, error) {
		runs++
		return message.Messages{message.NewMessage("shipped-1", []byte("shipped"))}, nil
	})
	for range 2 {
		out, err := handler(delivery(t.Context(), "1", "a"))
		if err != nil || len(out) != 1 || out[0].UUID != "shipped-1" {
			t.Errorf("handler = %v, %v, want the message of the only run", out, err)
		}
	}
	check.Equal(t, runs, 1, "runs of the handler")
}

// Each middleware accepts only the inboxes whose handlers it can run.
func TestEachMiddlewareNeedsItsKindOfInbox(t *testing.T) {
	t.Parallel()
	e, o := newRig(t).Engine, semelwatermill.Options{Name: semelwatermill.FromUUID("shop")}
	_, err1 := semelwatermill.Middleware(newInbox(t, inbox.Options[semel.Raw]{}), e, o)
	_, err2 := semelwatermill.MiddlewareTx(newInbox(t, inbox.Options[semel.Raw]{Mode: inbox.Leased}), e, o)
	for _, err := range []error{err1, err2} {
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != "Mode" {
			t.Errorf("got %v, want an error about Mode", err)
		}
	}
}
