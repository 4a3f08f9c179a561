package semelwatermill

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

// Middleware returns the middleware that handles each message once, in the mode of
// the inbox. Where that is transactional it opens the handler's transaction, which
// semel.TxOf finds by the message's context. Messages are
// compared by their payload; their metadata may differ from delivery to delivery.
// Wrong options are a *semel.FieldError.
func Middleware[Tx any](in *inbox.Inbox[semel.Raw], e *semel.Engine[Tx], o Options) (message.HandlerMiddleware, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	once := &once{o: o, reply: func(ctx context.Context, m inbox.Message[semel.Raw], fn handlerFunc) ([]produced, inbox.Result) {
		if in.Transactional() {
			return inbox.ReplyTx(ctx, in, e, m, func(ctx context.Context, _ Tx, _ semel.Raw) ([]produced, error) { return fn(ctx) })
		}
		return inbox.Reply(ctx, in, e, m, func(ctx context.Context, _ semel.Raw) ([]produced, error) { return fn(ctx) })
	}}
	return once.middleware, nil
}

// once is the middleware without the types of its inbox and its engine.
type once struct {
	o     Options
	reply func(context.Context, inbox.Message[semel.Raw], handlerFunc) ([]produced, inbox.Result)
}

type handlerFunc func(ctx context.Context) ([]produced, error)

func (c *once) middleware(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		all, r := c.handle(h, msg)
		switch r.Decision {
		case inbox.Ack:
			return messages(all), nil
		case inbox.Reject:
			return nil, c.reject(msg, r)
		case inbox.Redeliver:
		}
		pause(msg.Context(), min(r.After, c.o.MaxWait))
		return nil, fmt.Errorf("semelwatermill: to be delivered again: %w", r.Err)
	}
}

// handle has the message handled by h, unless it was handled before.
func (c *once) handle(h message.HandlerFunc, msg *message.Message) ([]produced, inbox.Result) {
	ctx := msg.Context()
	defer msg.SetContext(ctx) // the one of the handler's transaction has ended
	m, err := c.named(msg)
	if err != nil {
		return nil, inbox.Result{Decision: inbox.Reject, Err: err}
	}
	return c.reply(ctx, m, func(ctx context.Context) ([]produced, error) {
		msg.SetContext(ctx)
		out, err := h(msg)
		return kept(out), err
	})
}

// named is the message as the inbox gets it.
func (c *once) named(msg *message.Message) (m inbox.Message[semel.Raw], err error) {
	m.Payload = semel.Raw(msg.Payload)
	if m.Producer, m.ID, err = c.o.Name(msg); err != nil {
		return m, fmt.Errorf("name the message: %w", err)
	}
	if c.o.Sent == nil {
		return m, nil
	}
	if m.Sent, err = c.o.Sent(msg); err != nil {
		return m, fmt.Errorf("read when the message was sent: %w", err)
	}
	return m, nil
}

// pause waits d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
