package doctest_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

// The types that the fragments on tasks and messages use.
type (
	Mail  struct{ To string }
	Order struct {
		Item   string
		Amount int
	}
)

// working contains the fragments of docs/choosing.md on tasks.
func working(ctx context.Context, db *sql.DB, userID, orderID string, sendMail func(context.Context, Mail) (string, error)) error {
	mail := semel.Define("mail", semel.OperationOptions[Mail]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
	engine := must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Operations: []semel.Declared{mail}}))

	enqueue := func(ctx context.Context, tx *sql.Tx) error {
		_, err := semel.EnqueueTx(ctx, engine, tx, mail.Call(semel.ScopeOf(userID), orderID, Mail{To: userID}), semel.EnqueueOptions{})
		return err
	}
	tx := must(db.BeginTx(ctx, nil))
	must(0, errors.Join(enqueue(ctx, tx), enqueue(ctx, tx), tx.Commit()))

	worker := must(task.New(engine, task.Options{Slots: 20}))
	must(0, task.Handle(worker, mail, sendMail, task.HandlerOptions{}))
	err := worker.Run(ctx)
	return err
}

// shipping contains the fragment of docs/choosing.md on messages.
func shipping(ctx context.Context, engine *semel.Engine[*sql.Tx], orders *inbox.Inbox[Order], id string, order Order,
	ship func(context.Context, *sql.Tx, Order) error, ack, again, park func(inbox.Result),
) {
	r := inbox.HandleTx(ctx, orders, engine, inbox.Message[Order]{Producer: "shop", ID: id, Payload: order}, ship)
	switch r.Decision {
	case inbox.Ack: // handled, now or before
		ack(r)
	case inbox.Redeliver: // not handled: have it delivered again, after r.After
		again(r)
	case inbox.Reject: // never to be handled: to the dead letters; r.Err says why
		park(r)
	}
}

func runTaskFragment(t *testing.T) {
	db := must(sqlite.Open(filepath.Join(t.TempDir(), "tasks.db")))
	t.Cleanup(func() { db.Close() })
	must(0, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sent := 0
	err := working(ctx, db, "ann", "order-1", func(_ context.Context, m Mail) (string, error) {
		defer stop()
		sent++
		return "sent to " + m.To, nil
	})
	if err != nil || sent != 1 {
		t.Errorf("the worker returned %v after %d mails, want one", err, sent)
	}
}

func runMessageFragment(t *testing.T) {
	db := must(sqlite.Open(filepath.Join(t.TempDir(), "messages.db")))
	t.Cleanup(func() { db.Close() })
	must(0, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	orders := must(inbox.New("ship", inbox.Options[Order]{Group: "warehouse"}))
	engine := must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Operations: []semel.Declared{orders.Operation()}}))
	shipped, decisions := 0, ""
	ship := func(context.Context, *sql.Tx, Order) error {
		shipped++
		if shipped == 1 {
			return errors.New("not now")
		}
		return nil
	}
	note := func(text string) func(inbox.Result) { return func(inbox.Result) { decisions += text } }
	deliver := func(id string) {
		shipping(t.Context(), engine, orders, id, Order{Item: "book"}, ship, note("ack "), note("again "), note("park "))
	}
	deliver("1")
	deliver("2")
	deliver("2")
	deliver("")
	if want := "again ack ack park "; decisions != want || shipped != 2 {
		t.Errorf("four deliveries led to %q and %d shipments, want %q and 2", decisions, shipped, want)
	}
}
