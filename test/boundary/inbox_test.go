package boundary_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// delivery is one way to handle a message.
type delivery struct {
	options inbox.Options[string]
	inTx    bool
	// decision, inDoubt and state are expected for a message whose handler fails.
	decision inbox.Decision
	inDoubt  bool
	state    store.State
	effects  int // after two deliveries
}

func deliveries() map[string]delivery {
	return map[string]delivery{
		"Hold": {
			options:  inbox.Options[string]{Mode: inbox.Leased},
			decision: inbox.Reject, inDoubt: true, state: store.InDoubt, effects: 1,
		},
		"AtLeastOnce": {
			options:  inbox.Options[string]{Mode: inbox.Leased, Policy: semel.AtLeastOnce()},
			decision: inbox.Redeliver, state: store.Pending, effects: 2,
		},
		"Keyed": {
			options:  inbox.Options[string]{Mode: inbox.Leased, Policy: semel.Keyed()},
			decision: inbox.Redeliver, state: store.Pending, effects: 2,
		},
		"Fenced": {
			options:  inbox.Options[string]{Mode: inbox.Leased, Policy: semel.Fenced(raised, nothingFound)},
			decision: inbox.Redeliver, state: store.Pending, effects: 2,
		},
		"Heal": {
			options:  inbox.Options[string]{Mode: inbox.Leased, Policy: semel.Heal(nothingFound)},
			decision: inbox.Reject, inDoubt: true, state: store.InDoubt, effects: 1,
		},
		"pessimistic": {inTx: true, decision: inbox.Redeliver, state: store.Pending},
		"optimistic":  {options: inbox.Options[string]{Mode: inbox.Optimistic}, inTx: true, decision: inbox.Redeliver, state: store.Pending},
		"leased and Atomic": {
			options: inbox.Options[string]{Mode: inbox.Leased, Policy: semel.Atomic(), Lease: lease},
			inTx:    true, decision: inbox.Redeliver, state: store.Pending,
		},
	}
}

// TestInnerEndingDecidesNothingForMessages: however an inner call ends, the message is
// handled as after any other error of its handler.
func TestInnerEndingDecidesNothingForMessages(t *testing.T) {
	eachInnerCall(t, deliveries(), testDelivery)
}

func testDelivery(t *testing.T, by delivery, end innerCall, shape func(error) error) {
	t.Helper()
	by.options.Group = "group"
	by.options.Retry.Delay = func(int) time.Duration { return 5 * time.Second }
	in := check.Must(inbox.New("outer", by.options))(t)
	w := newFixture(t)
	body := end.body(t, w, shape)
	m := inbox.Message[string]{Producer: "producer", ID: "1", Payload: "in"}
	deliver := func() (r inbox.Result, panicked bool) {
		defer func() { panicked = recover() != nil }()
		if by.inTx {
			return inbox.HandleTx(t.Context(), in, w.engine, m, func(ctx context.Context, tx *memory.Tx, _ string) error {
				return body(ctx, w.effectIn(tx))
			}), false
		}
		return inbox.Handle(t.Context(), in, w.engine, m, func(ctx context.Context, _ string) error { return body(ctx, w.effect) }), false
	}
	r, panicked := deliver()
	if panicked != end.panics {
		t.Fatalf("panicked: %v, want %v", panicked, end.panics)
	}
	if end.wantError == nil && !end.panics {
		if r.Decision != inbox.Ack || r.Err != nil {
			t.Errorf("got %+v, want Ack", r)
		}
		return
	}
	if !end.panics && (r.Decision != by.decision || r.InDoubt != by.inDoubt || r.Poisoned || r.Duplicate) {
		t.Errorf("got %+v, want %v, in doubt: %v", r, by.decision, by.inDoubt)
	}
	if want := 5 * time.Second; by.decision == inbox.Redeliver && !end.panics && r.After != want {
		t.Errorf("the message stays away for %v, want %v", r.After, want)
	}
	c := check.Must(in.Call(m))(t)
	if state := w.record(t, c).State; state != by.state {
		t.Errorf("the record is %v, want %v", state, by.state)
	}
	w.ahead.Add(int64(5 * time.Second))
	_, _ = deliver()
	check.Equal(t, w.effects(), by.effects, "after two deliveries there: effects")
}
