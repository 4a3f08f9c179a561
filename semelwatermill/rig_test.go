package semelwatermill_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var errHandler = errors.New("the parcel is too heavy")

// rig is an engine over a store in memory, with a count of effects that
// includes repeated ones.
type rig struct {
	*semel.Engine[*memory.Tx]

	store *memory.Store
	tried atomic.Int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := memory.New(memory.Options{})
	e := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure}))(t)
	t.Cleanup(func() {
		check.NoError(t, e.Close(context.WithoutCancel(t.Context())), "close the engine")
	})
	return &rig{Engine: e, store: s}
}

// effect has an effect in the transaction that the middleware has opened.
func (r *rig) effect(msg *message.Message) error {
	tx, ok := semel.TxOf(msg.Context(), r.Engine)
	if !ok {
		return errors.New("the handler has no transaction")
	}
	return tx.Put(fmt.Sprint(string(msg.Payload), "#", r.tried.Add(1)), nil)
}

func (r *rig) effects(payload string) (n int) {
	for i := range r.tried.Load() {
		if _, there := r.store.Value(fmt.Sprint(payload, "#", i+1)); there {
			n++
		}
	}
	return n
}

func newInbox(t *testing.T, o inbox.Options[semel.Raw]) *inbox.Inbox[semel.Raw] {
	t.Helper()
	o.Group = "shipping"
	if o.Retry.Delay == nil {
		o.Retry.Delay = func(int) time.Duration { return 0 }
	}
	in := check.Must(inbox.New("ship", o))(t)
	return in
}

// wrap wraps h with the middleware. The identity of messages is in their
// metadata, and messages are held only for a minimal time.
func (r *rig) wrap(t *testing.T, in *inbox.Inbox[semel.Raw], o semelwatermill.Options, h message.HandlerFunc) message.HandlerFunc {
	t.Helper()
	if o.Name == nil {
		o.Name = semelwatermill.FromMetadata("producer", "id")
	}
	if o.MaxWait == 0 {
		o.MaxWait = time.Millisecond
	}
	if in.Transactional() {
		return check.Must(semelwatermill.MiddlewareTx(in, r.Engine, o))(t)(h)
	}
	return check.Must(semelwatermill.Middleware(in, r.Engine, o))(t)(h)
}

func delivery(ctx context.Context, id, payload string) *message.Message {
	msg := message.NewMessageWithContext(ctx, "uuid-"+id, message.Payload(payload))
	msg.Metadata.Set("producer", "shop")
	msg.Metadata.Set("id", id)
	return msg
}

// letters is a publisher that stores its messages. Tests can make it fail.
type letters struct {
	mu   sync.Mutex
	fail error
	got  map[string][]*message.Message
}

func (l *letters) Publish(topic string, all ...*message.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	if l.got == nil {
		l.got = make(map[string][]*message.Message)
	}
	l.got[topic] = append(l.got[topic], all...)
	return nil
}

func (l *letters) Close() error { return nil }

func (l *letters) failing(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *letters) in(topic string) []*message.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*message.Message(nil), l.got[topic]...)
}
