package semelwatermill

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/errtype"
)

// Middleware returns a middleware that handles each message once, for an inbox
// whose handlers run outside a transaction, in the mode Leased. [MiddlewareTx] is
// for other inboxes. Messages are compared by their payload; their metadata may
// differ between deliveries. The name of the router's handler is part of a message's
// identity, so one middleware may serve all handlers of a router. If an option is
// invalid, the error is a *semel.FieldError.
func Middleware(in *inbox.Inbox[semel.Raw], e semel.Runner, o Options) (message.HandlerMiddleware, error) {
	if in.Transactional() {
		return nil, invalid("Mode", "of the inbox handles messages in a transaction, which is for MiddlewareTx")
	}
	return newMiddleware(e, o, func(ctx context.Context, m inbox.Message[semel.Raw], fn handlerFunc) ([]producedMessage, inbox.Result) {
		return inbox.Reply(ctx, in, e, m, func(ctx context.Context, _ semel.Raw) ([]producedMessage, error) { return fn(ctx) })
	})
}

// MiddlewareTx is [Middleware] for a transactional inbox. The middleware opens the
// handler's transaction, which semel.TxOf returns from the message's context.
func MiddlewareTx[Tx any](in *inbox.Inbox[semel.Raw], e *semel.Engine[Tx], o Options) (message.HandlerMiddleware, error) {
	if !in.Transactional() {
		return nil, invalid("Mode", "of the inbox handles messages outside a transaction, which is for Middleware")
	}
	return newMiddleware(e, o, func(ctx context.Context, m inbox.Message[semel.Raw], fn handlerFunc) ([]producedMessage, inbox.Result) {
		return inbox.ReplyTx(ctx, in, e, m, func(ctx context.Context, _ Tx, _ semel.Raw) ([]producedMessage, error) { return fn(ctx) })
	})
}

func newMiddleware(e semel.Runner, o Options, reply replyFunc) (message.HandlerMiddleware, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	return (&deduplicator{engine: e, o: o, reply: reply}).middleware, nil
}

// deduplicator is the middleware without the type parameter of its engine.
type deduplicator struct {
	engine semel.Runner
	o      Options
	reply  replyFunc
}

// replyFunc handles a message once in its inbox.
type replyFunc func(ctx context.Context, m inbox.Message[semel.Raw], fn handlerFunc) ([]producedMessage, inbox.Result)

type handlerFunc func(ctx context.Context) ([]producedMessage, error)

func (c *deduplicator) middleware(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		all, r := c.handle(h, msg)
		switch r.Decision {
		case inbox.Ack:
			return decodeMessages(all), nil
		case inbox.Reject:
			return nil, c.reject(msg, r)
		case inbox.Redeliver:
		}
		sleep(msg.Context(), min(r.After, c.o.MaxWait))
		if isWaiting(r.Err) && msg.Nack() {
			// The router does not acknowledge a message that was nacked before.
			// Nil means that it logs no error, because waiting for another
			// delivery is not an error.
			return nil, nil
		}
		return nil, fmt.Errorf("semelwatermill: nacked for redelivery: %w", r.Err)
	}
}

// isWaiting reports whether a delivery ran nothing, because another delivery of
// the message is in progress or because the message's retry is not due. An
// error of the handler itself is an AttemptError, whatever it wraps.
func isWaiting(err error) bool {
	_, ran := errtype.Find[*semel.AttemptError](err)
	return errors.Is(err, semel.ErrInProgress) && !ran
}

// handle handles the message with h, unless it was handled before.
func (c *deduplicator) handle(h message.HandlerFunc, msg *message.Message) ([]producedMessage, inbox.Result) {
	ctx := msg.Context()
	defer msg.SetContext(ctx) // the context of the handler's transaction has ended
	m, err := c.inboxMessage(msg)
	if err != nil {
		return nil, inbox.Result{Decision: inbox.Reject, Err: err}
	}
	return c.reply(c.traced(ctx, msg), m, func(ctx context.Context) ([]producedMessage, error) {
		msg.SetContext(ctx)
		out, err := h(msg)
		return encodeMessages(out, adapter.InjectTrace(ctx, c.engine)), err
	})
}

// traced returns ctx in the trace of the message's metadata. An instrumented subscriber or an
// outer middleware may have continued that trace already, with a span of its own.
func (c *deduplicator) traced(ctx context.Context, msg *message.Message) context.Context {
	if adapter.InjectTrace(ctx, c.engine) != nil {
		return ctx
	}
	return adapter.ExtractTrace(ctx, c.engine, msg.Metadata)
}

// inboxMessage converts the message for the inbox. Each handler of a router
// handles each message once, so the handler's name is part of the message's
// identity. A handler has one topic, so the same ID on two topics is two
// messages.
func (c *deduplicator) inboxMessage(msg *message.Message) (m inbox.Message[semel.Raw], err error) {
	m.Payload = semel.Raw(msg.Payload)
	if m.Producer, m.ID, err = c.o.Name(msg); err != nil {
		return m, fmt.Errorf("read the message's identity: %w", err)
	}
	if handler := message.HandlerNameFromCtx(msg.Context()); handler != "" && m.Producer != "" {
		m.Producer = strconv.Itoa(len(handler)) + ":" + handler + ":" + m.Producer
	}
	if c.o.Sent == nil {
		return m, nil
	}
	if m.Sent, err = c.o.Sent(msg); err != nil {
		return m, fmt.Errorf("read the message's time: %w", err)
	}
	return m, nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
