package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// leasedInbox is an inbox in the mode Leased, and its only message.
type leasedInbox struct {
	*rig[*memory.Tx]

	clock *clock
	in    *inbox.Inbox[string]
	e     *semel.Engine[*memory.Tx]
	runs  int
}

func newLeased(t *testing.T, o inbox.Options[string]) *leasedInbox {
	t.Helper()
	o.Mode = inbox.Leased
	l := &leasedInbox{in: newInbox(t, "charge", o)}
	l.rig, l.clock = inMemoryAt()
	l.e = l.engine(t, semel.Options{Operations: []semel.Declared{l.in.Operation()}})
	return l
}

func (l *leasedInbox) deliver(t *testing.T, ends error) inbox.Result {
	t.Helper()
	return inbox.Handle(t.Context(), l.in, l.e, newMessage("shop", "1", "a"), func(context.Context, string) error {
		l.runs++
		return ends
	})
}

// crash claims the message as a consumer that then dies, and lets the lease
// expire.
func (l *leasedInbox) crash(t *testing.T) {
	t.Helper()
	c, err := l.in.Call(newMessage("shop", "1", "a"))
	check.Require(t, err)
	dead := l.engine(t, semel.Options{})
	a, _, err := adapter.Begin(t.Context(), dead, c)
	if err != nil || a == nil {
		t.Fatalf("the crashing consumer did not get the message: %v", err)
	}
	t.Cleanup(a.Abandon)
	l.clock.advance(time.Minute)
}

// TestHoldLeavesItInDoubt: under Hold an Unknown error makes the message
// InDoubt, which is not poison, until an operator resolves the record.
func TestHoldLeavesItInDoubt(t *testing.T) {
	t.Parallel()
	l := newLeased(t, inbox.Options[string]{})
	got := l.deliver(t, errHandler)
	want(t, got, inbox.Result{Decision: inbox.Reject, InDoubt: true})
	wantErr(t, got, errHandler)
	got = l.deliver(t, nil)
	want(t, got, inbox.Result{Decision: inbox.Reject, InDoubt: true})
	wantErr(t, got, semel.ErrInDoubt)
	check.Must(admin.Resolve(t.Context(), l.e, admin.Resolution{ID: got.ID, To: store.Pending, Actor: "ann", Reason: "the bank has no charge"}))(t)
	want(t, l.deliver(t, nil), inbox.Result{Decision: inbox.Ack})
	want(t, l.deliver(t, nil), inbox.Result{Decision: inbox.Ack, Duplicate: true})
	check.Equal(t, l.runs, 2, "runs")
}

// TestFencedLooksUpFirst: after another consumer's attempt, a fenced consumer
// raises the fence and looks up the result before it acts.
func TestFencedLooksUpFirst(t *testing.T) {
	t.Parallel()
	var raised []uint32
	l := newLeased(t, inbox.Options[string]{Policy: semel.Fenced(
		func(_ context.Context, _ semel.Scope, _ string, attempt uint32) error {
			raised = append(raised, attempt)
			return nil
		},
		func(context.Context, semel.Scope, string) (any, bool, error) { return struct{}{}, true, nil },
	)})
	l.crash(t)
	want(t, l.deliver(t, nil), inbox.Result{Decision: inbox.Ack, Duplicate: true})
	if l.runs != 0 || len(raised) != 1 || raised[0] != 2 {
		t.Errorf("%d runs, the fence was raised for %v, want none, and 2", l.runs, raised)
	}
}

// TestLeasedInATransaction: with the policy Atomic the claim commits first, and
// the effect commits together with the outcome.
func TestLeasedInATransaction(t *testing.T) {
	t.Parallel()
	l := newLeased(t, inbox.Options[string]{Policy: semel.Atomic(), Lease: 30 * time.Second})
	handle := func(ctx context.Context, tx *memory.Tx, payload string) error {
		if a, ok := semel.AttemptOf(ctx); !ok || a.Number() != 2 {
			return errors.New("it is no attempt, or not the second")
		}
		return l.effect(ctx, tx, payload)
	}
	l.crash(t)
	want(t, inbox.HandleTx(t.Context(), l.in, l.e, newMessage("shop", "1", "a"), handle), inbox.Result{Decision: inbox.Ack})
	want(t, inbox.HandleTx(t.Context(), l.in, l.e, newMessage("shop", "1", "a"), handle), inbox.Result{Decision: inbox.Ack, Duplicate: true})
	check.Equal(t, l.effects("a"), 1, "effects")
}

// TestWrongCallKeepsTheMessage: the error is the program's, so the broker keeps
// the message.
func TestWrongCallKeepsTheMessage(t *testing.T) {
	t.Parallel()
	l := newLeased(t, inbox.Options[string]{})
	got := inbox.HandleTx(t.Context(), l.in, l.e, newMessage("shop", "1", "a"), l.handler(func() { t.Error("it was run") }))
	want(t, got, inbox.Result{Decision: inbox.Redeliver})
	wantField(t, got.Err, "Policy")

	in := newInbox(t, "ship", inbox.Options[string]{})
	got = inbox.Handle(t.Context(), in, l.e, newMessage("shop", "1", "a"), func(context.Context, string) error {
		t.Error("it was run")
		return nil
	})
	want(t, got, inbox.Result{Decision: inbox.Redeliver})
	wantField(t, got.Err, "Mode")

	atomic := newLeased(t, inbox.Options[string]{Policy: semel.Atomic(), Lease: time.Second})
	got = atomic.deliver(t, nil)
	want(t, got, inbox.Result{Decision: inbox.Redeliver})
	wantField(t, got.Err, "Policy")
}

// TestLeasedPanic: a panic continues and counts as an error. In a transaction
// the rollback proves that there was no effect; otherwise the policy decides.
func TestLeasedPanic(t *testing.T) {
	t.Parallel()
	retry := semel.Retry{MaxErrors: 2}
	for name, test := range map[string]struct {
		o    inbox.Options[string]
		runs int
		want inbox.Result
	}{
		"Hold": {
			o:    inbox.Options[string]{Retry: retry},
			runs: 1, want: inbox.Result{Decision: inbox.Reject, InDoubt: true},
		},
		"AtLeastOnce": {
			o:    inbox.Options[string]{Retry: retry, Policy: semel.AtLeastOnce()},
			runs: 2, want: inbox.Result{Decision: inbox.Reject, InDoubt: true},
		},
		"Atomic": {
			o:    inbox.Options[string]{Retry: retry, Policy: semel.Atomic(), Lease: time.Minute},
			runs: 2, want: inbox.Result{Decision: inbox.Reject, Poisoned: true, Duplicate: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeased(t, test.o)
			deliver := func() (got inbox.Result, died any) {
				defer func() { died = recover() }()
				fn := func() error { l.runs++; panic("out of boxes") }
				if l.in.Transactional() {
					return inbox.HandleTx(t.Context(), l.in, l.e, newMessage("shop", "1", "a"), func(context.Context, *memory.Tx, string) error { return fn() }), nil
				}
				return inbox.Handle(t.Context(), l.in, l.e, newMessage("shop", "1", "a"), func(context.Context, string) error { return fn() }), nil
			}
			for range test.runs {
				if _, died := deliver(); died != "out of boxes" {
					t.Errorf("it panicked with %v", died)
				}
			}
			got, died := deliver()
			want(t, got, test.want)
			if died != nil || l.runs != test.runs {
				t.Errorf("%d runs, the last panicked with %v; want %d", l.runs, died, test.runs)
			}
		})
	}
}
