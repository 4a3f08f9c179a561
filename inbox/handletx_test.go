package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
)

func TestHandleTxInMemory(t *testing.T) {
	t.Parallel()
	handleTx(t, inMemory)
}

func TestHandleTxInSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	handleTx(t, inSQLite)
}

func TestHandleTxInMariaDB(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "mysql")
	handleTx(t, inMariaDB)
}

func TestHandleTxInPostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	handleTx(t, inPostgres(t))
}

var errHandler = errors.New("the parcel is too heavy")

// handleTx tests every possible end of a message in a transaction.
func handleTx[Tx any](t *testing.T, open func(*testing.T) *rig[Tx]) {
	t.Helper()
	for _, mode := range transactional() {
		for name, show := range map[string]func(*testing.T, *rig[Tx], inbox.Mode){
			"Duplicate": duplicate[Tx], "Error": failing[Tx], "Poison": poison[Tx], "Final": final[Tx],
			"Panic": panicking[Tx], "Mismatch": mismatch[Tx], "Names": names[Tx],
			"Redrive": redriven[Tx], "AtOnce": deliverConcurrently[Tx],
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				show(t, open(t), mode)
			})
		}
	}
}

// duplicate: a handled message is not handled again by any process.
func duplicate[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in := newInbox(t, "ship", inbox.Options[string]{Mode: mode})
	handle := func(ctx context.Context, tx Tx, payload string) error { return r.effect(ctx, tx, payload) }
	e := r.engine(t, semel.Options{})
	want(t, inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), handle), inbox.Result{Decision: inbox.Ack})
	for _, e := range []*semel.Engine[Tx]{e, r.engine(t, semel.Options{})} {
		got := inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), handle)
		want(t, got, inbox.Result{Decision: inbox.Ack, Duplicate: true})
		if got.Err != nil {
			t.Errorf("the duplicate's error is %v", got.Err)
		}
		if c, err := in.Call(newMessage("shop", "1", "a")); err != nil || got.ID != c.ID() {
			t.Errorf("the record is %v, want %v, %v", got.ID, c.ID(), err)
		}
	}
	check.Equal(t, r.effects("a"), 1, "effects")
}

// failing: a failed handler leaves no effect, and the message is redelivered.
func failing[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in, e := newInbox(t, "ship", inbox.Options[string]{Mode: mode}), r.engine(t, semel.Options{})
	fail := errHandler
	handle := func(ctx context.Context, tx Tx, payload string) error {
		return errors.Join(r.effect(ctx, tx, payload), fail)
	}
	got := inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), handle)
	want(t, got, inbox.Result{Decision: inbox.Redeliver})
	wantErr(t, got, errHandler)
	check.Equal(t, r.effects("a"), 0, "effects of the failed handler")
	fail = nil
	want(t, inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), handle), inbox.Result{Decision: inbox.Ack})
	check.Equal(t, r.effects("a"), 1, "effects")
}

// poison: after MaxErrors errors a message is poison, and further deliveries do
// not run the handler.
func poison[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 3, Delay: nil}})
	e := r.engine(t, semel.Options{})
	runs := 0
	deliver := func() inbox.Result {
		return inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx Tx, payload string) error {
			runs++
			return errors.Join(r.effect(ctx, tx, payload), errHandler)
		})
	}
	for range 2 {
		want(t, deliver(), inbox.Result{Decision: inbox.Redeliver})
	}
	last := deliver()
	want(t, last, inbox.Result{Decision: inbox.Reject, Poisoned: true})
	failure, ok := errtype.Find[*semel.Failure](last.Err)
	if !ok || failure.Code != "exhausted" || !strings.Contains(failure.Message, errHandler.Error()) {
		t.Errorf("the error is %v, want the handler's last error", last.Err)
	}
	var p admin.Progress
	if ok {
		if err := json.Unmarshal(failure.Details, &p); err != nil || p.Errors != 3 || len(p.Tries) != 3 {
			t.Errorf("the history is %+v, %v, want 3 errors", p, err)
		}
	}
	want(t, deliver(), inbox.Result{Decision: inbox.Reject, Poisoned: true, Duplicate: true})
	if runs != 3 || r.effects("a") != 0 {
		t.Errorf("%d runs, %d effects, want 3 and none", runs, r.effects("a"))
	}
}

// final: a message whose handler returns a final error is poison at once.
func final[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in, e := newInbox(t, "ship", inbox.Options[string]{Mode: mode}), r.engine(t, semel.Options{})
	deliver := func() inbox.Result {
		return inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx Tx, payload string) error {
			return errors.Join(r.effect(ctx, tx, payload), semel.Final(&semel.Failure{Code: "no_address"}))
		})
	}
	got := deliver()
	want(t, got, inbox.Result{Decision: inbox.Reject, Poisoned: true})
	if f, ok := errtype.Find[*semel.Failure](got.Err); !ok || f.Code != "no_address" {
		t.Errorf("the error is %v, want the handler's own", got.Err)
	}
	want(t, deliver(), inbox.Result{Decision: inbox.Reject, Poisoned: true, Duplicate: true})
	check.Equal(t, r.effects("a"), 0, "effects")
}

// panicking: a panic continues and is counted. A message that always makes its
// handler panic becomes poison.
func panicking[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 2}})
	e := r.engine(t, semel.Options{})
	deliver := func() (got inbox.Result, died any) {
		defer func() { died = recover() }()
		return inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx Tx, payload string) error {
			if err := r.effect(ctx, tx, payload); err != nil {
				return err
			}
			panic("on purpose")
		}), nil
	}
	for range 2 {
		if _, died := deliver(); died != "on purpose" {
			t.Errorf("it panicked with %v", died)
		}
	}
	got, died := deliver()
	if died != nil {
		t.Errorf("the handler was run again, and panicked with %v", died)
	}
	want(t, got, inbox.Result{Decision: inbox.Reject, Poisoned: true, Duplicate: true})
	check.Equal(t, r.effects("a"), 0, "effects")
}

// mismatch: a delivery with the same identity and another payload is rejected,
// and the first message is unaffected.
func mismatch[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in, e := newInbox(t, "ship", inbox.Options[string]{Mode: mode}), r.engine(t, semel.Options{})
	handle := func(ctx context.Context, tx Tx, payload string) error { return r.effect(ctx, tx, payload) }
	want(t, inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), handle), inbox.Result{Decision: inbox.Ack})
	got := inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "b"), handle)
	want(t, got, inbox.Result{Decision: inbox.Reject})
	wantErr(t, got, semel.ErrMismatch)
	want(t, inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), handle), inbox.Result{Decision: inbox.Ack, Duplicate: true})
	if a, b := r.effects("a"), r.effects("b"); a != 1 || b != 0 {
		t.Errorf("%d effects of the first, %d of the second", a, b)
	}
}

// names: an ID is unique within its producer and group. No two different
// combinations of names lead to the same message.
func names[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	e := r.engine(t, semel.Options{})
	handle := func(ctx context.Context, tx Tx, payload string) error { return r.effect(ctx, tx, payload) }
	messages := []inbox.Message[string]{
		newMessage("shop", "1", "a"), newMessage("mall", "1", "a"), newMessage("shop", "2", "a"), newMessage("shop:1", "2", "a"),
		newMessage("shop", "1:2", "a"), newMessage("s", "hop1", "a"), newMessage("4:shop", "1", "a"), newMessage("SHOP", "1", "a"), newMessage("shop", "1 ", "a"),
	}
	groups := []string{"shipping", "billing"}
	for _, group := range groups {
		in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Group: group})
		for _, m := range messages {
			want(t, inbox.HandleTx(t.Context(), in, e, m, handle), inbox.Result{Decision: inbox.Ack})
		}
	}
	other := newInbox(t, "ship_late", inbox.Options[string]{Mode: mode})
	want(t, inbox.HandleTx(t.Context(), other, e, messages[0], handle), inbox.Result{Decision: inbox.Ack})
	if n, all := r.effects("a"), len(groups)*len(messages)+1; n != all {
		t.Errorf("%d effects, want %d", n, all)
	}
}

// redriven: a poison message is handled after an operator has redriven it.
func redriven[Tx any](t *testing.T, r *rig[Tx], mode inbox.Mode) {
	in := newInbox(t, "ship", inbox.Options[string]{Mode: mode, Retry: semel.Retry{MaxErrors: 1}})
	e := r.engine(t, semel.Options{Operations: []semel.Declared{in.Operation()}})
	fail := errHandler
	deliver := func() inbox.Result {
		return inbox.HandleTx(t.Context(), in, e, newMessage("shop", "1", "a"), func(ctx context.Context, tx Tx, payload string) error {
			return errors.Join(r.effect(ctx, tx, payload), fail)
		})
	}
	got := deliver()
	want(t, got, inbox.Result{Decision: inbox.Reject, Poisoned: true})
	check.Must(admin.Redrive(t.Context(), e, admin.RedriveRequest{ID: got.ID, Actor: "ann", Reason: "mended"}))(t)
	fail = nil
	want(t, deliver(), inbox.Result{Decision: inbox.Ack})
	want(t, deliver(), inbox.Result{Decision: inbox.Ack, Duplicate: true})
	check.Equal(t, r.effects("a"), 1, "effects")
}
