package semelwatermill_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelwatermill"
)

// TestHandledOnce: a duplicate is acknowledged and not handled, even if its
// metadata differs. Afterwards the message has its own context again.
func TestHandledOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []inbox.Mode{inbox.Pessimistic, inbox.Optimistic} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			h := r.wrap(t, newInbox(t, inbox.Options[semel.Raw]{Mode: mode}), semelwatermill.Options{}, func(msg *message.Message) ([]*message.Message, error) {
				return nil, r.effect(msg)
			})
			for range 3 {
				msg := delivery(t.Context(), "1", "a")
				msg.Metadata.Set("deliveries", time.Now().String())
				if out, err := h(msg); err != nil || len(out) != 0 {
					t.Errorf("got %v, %v", out, err)
				}
				if msg.Context() != t.Context() {
					t.Error("the message still has the context of its handler")
				}
			}
			check.Equal(t, r.effects("a"), 1, "effects")
		})
	}
}

// TestLeased: handlers have an attempt and no transaction.
func TestLeased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	runs := 0
	in := newInbox(t, inbox.Options[semel.Raw]{Mode: inbox.Leased, Policy: semel.AtLeastOnce()})
	h := r.wrap(t, in, semelwatermill.Options{}, func(msg *message.Message) ([]*message.Message, error) {
		runs++
		a, ok := semel.AttemptOf(msg.Context())
		if !ok || int(a.Number()) != runs {
			t.Errorf("attempt %v in run %d", a, runs)
		}
		if runs == 1 {
			return nil, errHandler
		}
		return []*message.Message{message.NewMessage("out-1", nil)}, nil
	})
	_, err := h(delivery(t.Context(), "1", "a"))
	check.ErrorIs(t, err, errHandler, "the first delivery")
	for range 2 {
		out, err := h(delivery(t.Context(), "1", "a"))
		if err != nil || len(out) != 1 || out[0].UUID != "out-1" {
			t.Errorf("got %v, %v", out, err)
		}
	}
	check.Equal(t, runs, 2, "runs")
}

// TestProducedMessagesAreReplayed: each duplicate returns the same produced
// messages, byte for byte. After an error only the messages of the last run are
// returned.
func TestProducedMessagesAreReplayed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	runs := 0
	h := r.wrap(t, newInbox(t, inbox.Options[semel.Raw]{}), semelwatermill.Options{}, func(msg *message.Message) ([]*message.Message, error) {
		runs++
		out := message.NewMessage("out-"+msg.UUID, message.Payload{0, 0xff, '"'})
		out.Metadata.Set("type", "shipped")
		if runs == 1 {
			return []*message.Message{message.NewMessage("of the failed run", nil)}, errHandler
		}
		return []*message.Message{out, message.NewMessage("second", nil)}, r.effect(msg)
	})
	if out, err := h(delivery(t.Context(), "1", "a")); !errors.Is(err, errHandler) || len(out) != 0 {
		t.Errorf("got %v, %v", out, err)
	}
	for range 3 {
		out, err := h(delivery(t.Context(), "1", "a"))
		if err != nil || len(out) != 2 {
			t.Fatalf("got %v, %v", out, err)
		}
		if first := out[0]; first.UUID != "out-uuid-1" || string(first.Payload) != "\x00\xff\"" || first.Metadata.Get("type") != "shipped" {
			t.Errorf("it produced %+v", first)
		}
		if out[1].UUID != "second" || out[0].Metadata == nil {
			t.Errorf("and %+v", out[1])
		}
	}
	if runs != 2 || r.effects("a") != 1 {
		t.Errorf("%d runs, %d effects", runs, r.effects("a"))
	}
}

// TestPoison: a poison message is published to its topic with the reason. It is
// acknowledged only after that.
func TestPoison(t *testing.T) {
	t.Parallel()
	r, dead := newRig(t), new(letters)
	runs := 0
	o := semelwatermill.Options{Poison: dead, PoisonTopic: "dead"}
	h := r.wrap(t, newInbox(t, inbox.Options[semel.Raw]{Retry: semel.Retry{MaxErrors: 2}}), o, func(*message.Message) ([]*message.Message, error) {
		runs++
		return nil, errHandler
	})
	_, err := h(delivery(t.Context(), "1", "a"))
	check.ErrorIs(t, err, errHandler, "the first delivery")
	down := errors.New("the broker is down")
	dead.failing(down)
	for range 2 {
		if _, err := h(delivery(t.Context(), "1", "a")); !errors.Is(err, down) {
			t.Errorf("the message was acknowledged, or failed with %v, while Poison was down", err)
		}
	}
	dead.failing(nil)
	if _, err := h(delivery(t.Context(), "1", "a")); err != nil {
		t.Errorf("the message is nacked with %v", err)
	}
	got := dead.in("dead")
	if len(got) != 1 || runs != 2 {
		t.Fatalf("%d dead letters after %d runs, want 1 and 2", len(got), runs)
	}
	meta := got[0].Metadata
	if string(got[0].Payload) != "a" || got[0].UUID != "uuid-1" || meta.Get("producer") != "shop" ||
		meta.Get(semelwatermill.ReasonKey) != "exhausted: the last error: "+errHandler.Error() ||
		len(meta.Get(semelwatermill.RecordKey)) != 32 || meta.Get(semelwatermill.InDoubtKey) != "" {
		t.Errorf("the dead letter is %q with %v", got[0].Payload, meta)
	}
}

// TestRejected: messages without an identity, with the identity of another
// message, and in doubt are rejected. The last ones are marked.
func TestRejected(t *testing.T) {
	t.Parallel()
	r, dead := newRig(t), new(letters)
	o := semelwatermill.Options{Poison: dead, PoisonTopic: "dead"}
	in := newInbox(t, inbox.Options[semel.Raw]{Mode: inbox.Leased})
	h := r.wrap(t, in, o, func(msg *message.Message) ([]*message.Message, error) {
		if string(msg.Payload) == "a" {
			return nil, nil
		}
		return nil, errHandler
	})
	nameless := delivery(t.Context(), "1", "a")
	nameless.Metadata.Set("producer", "")
	for i, msg := range []*message.Message{delivery(t.Context(), "1", "a"), nameless, delivery(t.Context(), "1", "other"), delivery(t.Context(), "2", "b")} {
		_, err := h(msg)
		check.NoError(t, err, "message %d", i)
	}
	got := dead.in("dead")
	if len(got) != 3 {
		t.Fatalf("%d dead letters, want 3", len(got))
	}
	for i, want := range []struct {
		reason  string
		doubt   string
		wantsID bool
	}{
		{"semel: Producer is required: an ID is unique only within its producer", "", false},
		{semel.ErrMismatch.Error(), "", true},
		{"", "true", true},
	} {
		meta := got[i].Metadata
		if reason := meta.Get(semelwatermill.ReasonKey); want.reason != "" && reason != want.reason || reason == "" {
			t.Errorf("%d is rejected because %q", i, reason)
		}
		if meta.Get(semelwatermill.InDoubtKey) != want.doubt || meta.Get(semelwatermill.RecordKey) != "" != want.wantsID {
			t.Errorf("%d has the metadata %v", i, meta)
		}
	}
	failing := r.wrap(t, in, semelwatermill.Options{
		Poison: dead, PoisonTopic: "dead",
		Name: func(*message.Message) (string, string, error) { return "", "", errHandler },
	}, func(*message.Message) ([]*message.Message, error) { return nil, errors.New("it was run") })
	if _, err := failing(delivery(t.Context(), "3", "a")); err != nil || len(dead.in("dead")) != 4 {
		t.Errorf("a message with an unreadable identity: %v, %d dead letters", err, len(dead.in("dead")))
	}
}

// TestRejectedWithoutPoisonQueue: without a Poison publisher, rejected messages
// are nacked with a RejectedError.
func TestRejectedWithoutPoisonQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.wrap(t, newInbox(t, inbox.Options[semel.Raw]{}), semelwatermill.Options{}, func(*message.Message) ([]*message.Message, error) {
		return nil, semel.Final(errHandler)
	})
	for _, duplicate := range []bool{false, true} {
		_, err := h(delivery(t.Context(), "1", "a"))
		rejected, ok := errtype.Find[*semelwatermill.RejectedError](err)
		if !ok || !rejected.Result.Poisoned || rejected.Result.Duplicate != duplicate {
			t.Errorf("the error is %v", err)
		}
		if f, ok := errtype.Find[*semel.Failure](err); !ok || f.Message != errHandler.Error() {
			t.Errorf("the reason is %v", err)
		}
	}
}

// TestWaitEndsWithTheMessage: closing the router does not wait for a message's
// delay.
func TestWaitEndsWithTheMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := newInbox(t, inbox.Options[semel.Raw]{Retry: semel.Retry{Delay: func(int) time.Duration { return time.Hour }}})
	ctx, stop := context.WithCancel(t.Context())
	h := r.wrap(t, in, semelwatermill.Options{MaxWait: time.Hour}, func(*message.Message) ([]*message.Message, error) {
		return nil, errHandler
	})
	waited := make(chan error)
	go func() {
		_, err := h(delivery(ctx, "1", "a"))
		waited <- err
	}()
	stop()
	if err := <-waited; err == nil {
		t.Error("the message was acknowledged")
	}
}

// TestStamped: the inbox gets the time that the producer states.
func TestStamped(t *testing.T) {
	t.Parallel()
	r, dead := newRig(t), new(letters)
	in := newInbox(t, inbox.Options[semel.Raw]{Stamped: true, Retention: time.Hour})
	sent := time.Now()
	h := r.wrap(t, in, semelwatermill.Options{
		Poison: dead, PoisonTopic: "dead",
		Sent: func(msg *message.Message) (time.Time, error) {
			if string(msg.Payload) == "unreadable" {
				return time.Time{}, errHandler
			}
			return sent, nil
		},
	}, func(msg *message.Message) ([]*message.Message, error) { return nil, r.effect(msg) })
	for _, payload := range []string{"a", "a", "unreadable"} {
		_, err := h(delivery(t.Context(), "1", payload))
		check.NoError(t, err, "%s", payload)
	}
	sent = sent.Add(-2 * time.Hour)
	check.Must(h(delivery(t.Context(), "2", "old")))(t)
	if n := len(dead.in("dead")); n != 2 || r.effects("a") != 1 || r.effects("old") != 0 {
		t.Errorf("%d dead letters, %d effects, %d of the old one", n, r.effects("a"), r.effects("old"))
	}
}

// TestNames: each NameFunc returns its producer and ID.
func TestNames(t *testing.T) {
	t.Parallel()
	msg := delivery(t.Context(), "1", "a")
	for want, name := range map[string]semelwatermill.NameFunc{
		"shop 1":      semelwatermill.FromMetadata("producer", "id"),
		"mall uuid-1": semelwatermill.FromUUID("mall"),
		"mall sha256-ca978112ca1bbdcafac231b39a23dc4d": semelwatermill.FromPayload("mall"),
	} {
		if producer, id, err := name(msg); producer+" "+id != want || err != nil {
			t.Errorf("got %s %s, %v, want %s", producer, id, err, want)
		}
	}
}

// TestInvalidOptions: the error names the invalid option.
func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	name := semelwatermill.FromUUID("shop")
	for field, o := range map[string]semelwatermill.Options{
		"Name":        {},
		"PoisonTopic": {Name: name, Poison: new(letters)},
		"Poison":      {Name: name, PoisonTopic: "dead"},
		"MaxWait":     {Name: name, MaxWait: -1},
	} {
		_, err := semelwatermill.MiddlewareTx(newInbox(t, inbox.Options[semel.Raw]{}), newRig(t).Engine, o)
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != field {
			t.Errorf("got %v, want an error about %s", err, field)
		}
	}
}
