package semelwatermill

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

// Middleware returns the middleware that handles each message once, in the mode of
// the inbox. Where that is transactional it opens the handler's transaction, which
// semel.TxOf finds by the message's context. Messages are
// compared by their payload; their metadata may differ from delivery to delivery.
// The name of the router's handler is part of what names a message, so one middleware
// may serve all handlers of a router.
// Wrong options are a *semel.FieldError.
func Middleware[Tx any](in *inbox.Inbox[semel.Raw], e *semel.Engine[Tx], o Options) (message.HandlerMiddleware, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	once := &deduplicator{o: o, reply: func(ctx context.Context, m inbox.Message[semel.Raw], fn handlerFunc) ([]producedMessage, inbox.Result) {
		if in.Transactional() {
			return inbox.ReplyTx(ctx, in, e, m, func(ctx context.Context, _ Tx, _ semel.Raw) ([]producedMessage, error) { return fn(ctx) })
		}
		return inbox.Reply(ctx, in, e, m, func(ctx context.Context, _ semel.Raw) ([]producedMessage, error) { return fn(ctx) })
	}}
	return once.middleware, nil
}

// deduplicator is the middleware without the types of its inbox and its engine.
type deduplicator struct {
	o     Options
	reply func(context.Context, inbox.Message[semel.Raw], handlerFunc) ([]producedMessage, inbox.Result)
}

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
			// The router does not acknowledge a message that was nacked before, and
			// logs no error: to wait for another delivery is none.
			return nil, nil
		}
		return nil, fmt.Errorf("semelwatermill: to be delivered again: %w", r.Err)
	}
}

// isWaiting reports whether a delivery ran nothing, because another delivery of the
// message is being handled or because it came before its retry is due. An error of
// the handler itself is an AttemptError, whatever it wraps.
func isWaiting(err error) bool {
	_, ran := errors.AsType[*semel.AttemptError](err)
	return errors.Is(err, semel.ErrInProgress) && !ran
}

// handle has the message handled by h, unless it was handled before.
func (c *deduplicator) handle(h message.HandlerFunc, msg *message.Message) ([]producedMessage, inbox.Result) {
	ctx := msg.Context()
	defer msg.SetContext(ctx) // the one of the handler's transaction has ended
	m, err := c.inboxMessage(msg)
	if err != nil {
		return nil, inbox.Result{Decision: inbox.Reject, Err: err}
	}
	return c.reply(ctx, m, func(ctx context.Context) ([]producedMessage, error) {
		msg.SetContext(ctx)
		out, err := h(msg)
		return encodeMessages(out), err
	})
}

// inboxMessage is the message as the inbox gets it. Each handler of a router handles each
// message once, so the handler's name is part of what names the message. A handler
// has one topic: the same id on two topics names two messages.
func (c *deduplicator) inboxMessage(msg *message.Message) (m inbox.Message[semel.Raw], err error) {
	m.Payload = semel.Raw(msg.Payload)
	if m.Producer, m.ID, err = c.o.Name(msg); err != nil {
		return m, fmt.Errorf("name the message: %w", err)
	}
	if handler := message.HandlerNameFromCtx(msg.Context()); handler != "" && m.Producer != "" {
		m.Producer = strconv.Itoa(len(handler)) + ":" + handler + ":" + m.Producer
	}
	if c.o.Sent == nil {
		return m, nil
	}
	if m.Sent, err = c.o.Sent(msg); err != nil {
		return m, fmt.Errorf("read when the message was sent: %w", err)
	}
	return m, nil
}

// sleep waits d, or less when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
