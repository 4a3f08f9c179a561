//go:build fragments

package doctest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/semeltest/pin"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

type (
	Greeting      struct{ Name string }
	Mail          struct{ To string }
	Member        struct{ ID, Email string }
	ProviderEvent struct{ ID, Order string }
	SavedOrder    struct{ Number string }
	Trip          struct{ Flight, Hotel string }
	Order         struct {
		Item   string
		Amount int
	}
)

// docs/tasks.md: var welcome

func TestFragmentsOfTasks(t *testing.T) {
	mail := semel.Define("send_mail", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{MaxErrors: 1}})
	db, engine := onSQLite(t, welcome, mail)
	scope, memberID := semel.Shared(), "7"
	ctx, stop := context.WithCancel(t.Context())
	tx := must(db.BeginTx(ctx, nil))
	for _, want := range []bool{true, false} {
		// docs/tasks.md: added, err
		check.Result(added, err)(t, want, "EnqueueTx")
	}
	must(0, tx.Commit())
	greet := func(context.Context, Greeting) (string, error) { defer stop(); return "", nil }
	{
		// docs/tasks.md: worker := must(
		check.NoError(t, err, "the worker returned")
	}
	ctx = t.Context()
	_, _, failed := semel.Do(ctx, engine, mail.Call(scope, "7", "ann"), func(context.Context) (string, error) { return "", errNoAnswer })
	check.Fails(t, failed, "the mail was sent")
	check.NoError(t, func() error {
		// docs/tasks.md: for r, err
		return nil
	}())
	r, _, err := admin.Get(ctx, engine, "send_mail", scope, "7")
	check.Result(r.State, err)(t, store.Pending, "the dead letter after its redrive")
}

func TestFragmentsOfChoosingTasks(t *testing.T) {
	db, _ := onSQLite(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	userID, orderID, sent := "ann", "o-1", 0
	sendMail := func(context.Context, Mail) (string, error) { defer stop(); sent++; return "", nil }
	// docs/choosing.md: mail :=
	tx := must(db.BeginTx(ctx, nil))
	check.NoError(t, errors.Join(enqueue(ctx, tx), enqueue(ctx, tx), tx.Commit()))
	// docs/choosing.md: worker := must(
	check.NoError(t, err, "the worker returned")
	check.Equal(t, sent, 1, "mails")
}

func TestFragmentsOfChoosingMessages(t *testing.T) {
	orders := must(inbox.New("ship", inbox.Options[Order]{Group: "warehouse"}))
	_, engine := onSQLite(t, orders.Operation())
	ctx, order, shipped, decisions := t.Context(), Order{Item: "book"}, 0, ""
	ship := func(context.Context, *sql.Tx, Order) error {
		if shipped++; shipped == 1 {
			return errNoAnswer
		}
		return nil
	}
	note := func(text string) func(inbox.Result) { return func(inbox.Result) { decisions += text } }
	ack, again, park := note("ack "), note("again "), note("park ")
	for _, id := range []string{"1", "2", "2", ""} {
		// docs/choosing.md: r := inbox.HandleTx
	}
	check.Equal(t, decisions, "again ack ack park ", "the decisions")
	check.Equal(t, shipped, 2, "shipments")
}

// docs/recipes/email.md: var sendWelcome

// docs/recipes/email.md: var joined

// docs/recipes/email.md: var mailMember

var signUp = semel.Define("sign_up", semel.OperationOptions[string]{})

func TestFragmentsOfEmail(t *testing.T) {
	db, engine := onSQLite(t, sendWelcome, joined.Operation(), mailMember.Operation())
	ctx, key, req, m := t.Context(), "k", "ann@example.com", Member{ID: "7", Email: "ann@example.com"}
	advance := func() { t.Helper(); semeltest.Advance(t, sqlite.New(db, sqlite.Options{}), time.Minute) } // the delay of the retry
	t.Run("a task", func(t *testing.T) {
		insertMember := func(context.Context, *sql.Tx, string) (Member, error) { return m, nil }
		twice(t, func() (bool, error) {
			// docs/recipes/email.md: member, replayed, err
			return replayed, err
		})
		mail, worker := new(remote), must(task.New(engine, task.Options{}))
		// docs/recipes/email.md: err := task.Handle
		check.Require(t, err)
		check.Equal(t, semeltest.RunDue(t, worker), 1, "runs of the task")
		advance()
		check.Equal(t, semeltest.RunDue(t, worker), 1, "runs of the task after the lost reply")
		mail.requireOneKey(t)
	})
	t.Run("a message that enqueues", func(t *testing.T) {
		id, m := "e-1", Member{ID: "8"}
		twice(t, func() (bool, error) {
			// docs/recipes/email.md: r := inbox.HandleTx
			return r.Duplicate, r.Err
		})
		semeltest.RequireEnqueued(t, engine, sendWelcome.Call(semel.Shared(), "8", m))
	})
	t.Run("a message that sends", func(t *testing.T) {
		id, mail := "e-1", new(remote)
		for _, want := range []inbox.Decision{inbox.Redeliver, inbox.Ack, inbox.Ack} {
			// docs/recipes/email.md: r := inbox.Handle(
			check.Equal(t, r.Decision, want, "the decision: %v", r.Err)
			advance()
		}
		mail.requireOneKey(t)
	})
}

func TestFragmentsOfWebhooks(t *testing.T) {
	webhooks := must(inbox.New("bank_event", inbox.Options[ProviderEvent]{Group: "shop"}))
	_, engine := onSQLite(t, webhooks.Operation())
	notice, paid := ProviderEvent{"7", "o-17"}, 0
	markPaid := func(context.Context, *sql.Tx, ProviderEvent) error { paid++; return nil }
	saveForOperator := func(ProviderEvent, error) {}
	for range 3 {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/events", http.NoBody)
		// docs/recipes/webhooks.md: result :=
		check.Equal(t, w.Code, http.StatusNoContent, "the answer to the provider")
	}
	check.Equal(t, paid, 1, "payments")
}

func TestFragmentsOfMessages(t *testing.T) {
	shipping := must(inbox.New("ship_order", inbox.Options[semel.Raw]{Group: "shipping"}))
	_, engine := onSQLite(t, shipping.Operation())
	pubsub := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router := must(message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}))
	var publisher, subscriber = message.Publisher(pubsub), message.Subscriber(pubsub)
	shipped := make(chan string, 3)
	ship := func(_ context.Context, _ *sql.Tx, order []byte) error { shipped <- string(order); return nil }
	// docs/messages.md: once :=
	for _, order := range []string{"7", "7", "8"} {
		msg := message.NewMessage(watermill.NewUUID(), message.Payload(order))
		msg.Metadata = message.Metadata{"producer": "shop", "order": order}
		must(0, pubsub.Publish("orders", msg))
	}
	ended := make(chan error)
	go func() { ended <- router.Run(t.Context()) }()
	got := []string{<-shipped, <-shipped}
	must(0, router.Close())
	must(0, <-ended)
	slices.Sort(got)
	check.Equal(t, fmt.Sprint(got, len(shipped)), "[7 8] 0", "each order is shipped once, and no other")
}

type payment struct{ ChargeID string }

type provider struct{ charges int }

func (p *provider) charge(context.Context, payment) (string, error) { p.charges++; return "ch_1", nil }

// TestFragmentsOfCheckout fails between the two steps first.
func TestFragmentsOfCheckout(t *testing.T) {
	_, engine := onSQLite(t)
	record := semel.Define("record_payment", semel.OperationOptions[payment]{})
	op := semel.Define("pay_order", semel.OperationOptions[string]{Policy: semel.Keyed()})
	ctx, scope, p, provider, recorded := t.Context(), semel.ScopeOf("ann"), payment{}, new(provider), 0
	insertAndEnqueue := func(context.Context, *sql.Tx) (payment, error) {
		if provider.charges == 1 {
			return payment{}, errNoAnswer
		}
		recorded++
		return payment{"ch_1"}, nil
	}
	call := op.Call(scope, "o-17", "book")
	pay := func() (bool, error) {
		// docs/recipes/checkout.md: paid, replayed, err
		return replayed, err
	}
	_, err := pay()
	check.Fails(t, err, "the first attempt")
	twice(t, pay)
	check.Equal(t, fmt.Sprint(recorded, provider.charges), "1 2", "recorded payments and charges")
}

// docs/retention.md: var pay

func TestFragmentsOfOutbox(t *testing.T) {
	_, engine := onSQLite(t)
	scope, key, req := semel.ScopeOf("ann"), "k", Order{Item: "book"}
	ctx, stop := context.WithCancel(t.Context())
	placeOrder := semel.Define("place_order", semel.OperationOptions[Order]{})
	insertOrder := func(context.Context, *sql.Tx, Order) (SavedOrder, []byte, error) {
		return SavedOrder{"17"}, []byte("{}"), nil
	}
	twice(t, func() (bool, error) {
		// docs/recipes/outbox.md: order, replayed, err
		return replayed, err
	})
	published := 0
	publisher := outbox.PublisherFunc(func(_ context.Context, m outbox.Message) error { defer stop(); published++; return nil })
	check.NoError(t, func() error {
		// docs/recipes/outbox.md: relay, err
		return nil
	}())
	check.Equal(t, published, 1, "published events")
}

func TestFragmentsOfImport(t *testing.T) {
	_, engine := onSQLite(t)
	ctx, fileID, lines, inserted := t.Context(), "f1", []string{"a", "bad", "c"}, ""
	importLine := semel.Define("import_line", semel.OperationOptions[string]{})
	insertLine := func(_ context.Context, _ *sql.Tx, line string) (string, error) {
		if line == "bad" {
			return "", semel.Final(&semel.Failure{Message: "no price"})
		}
		inserted += line
		return "", nil
	}
	for range 2 {
		report, err := func() (report []string, err error) {
			// docs/recipes/import.md: for number, line
			return report, nil
		}()
		check.Result(fmt.Sprint(report), err)(t, "[line 1: no price]", "the report")
	}
	check.Equal(t, inserted, "ac", "lines")
}

// docs/recipes/saga.md: func step

// company remembers the keys of its requests, and does not answer the first cancellation.
type company struct {
	keys    []string
	refuses bool
}

func (c *company) book(_ context.Context, key, _ string) (string, error) {
	c.keys = append(c.keys, "book "+key)
	if c.refuses {
		return "", semel.Final(&semel.Failure{Code: "no_room"})
	}
	return "7", nil
}

func (c *company) cancel(_ context.Context, key, booking string) (string, error) {
	if c.keys = append(c.keys, "cancel "+key); len(c.keys) == 2 {
		return "", errNoAnswer
	}
	return booking, nil
}

func TestFragmentsOfSaga(t *testing.T) {
	_, engine := onSQLite(t)
	keyed := func(name string) *semel.Operation[string] {
		return semel.Define(name, semel.OperationOptions[string]{Policy: semel.Keyed()})
	}
	bookTrip, bookFlight, bookHotel, cancelFlight := keyed("book_trip"), keyed("book_flight"), keyed("book_hotel"), keyed("cancel_flight")
	ctx, scope, key, req, airline, hotels := t.Context(), semel.ScopeOf("ann"), "t1", "Rome", new(company), &company{refuses: true}
	book := func() (Trip, bool, error) {
		// docs/recipes/saga.md: trip, replayed, err
		return trip, replayed, err
	}
	_, _, err := book()
	check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the cancellation without an answer")
	hotels.refuses = false // the refusal stays, also if there is a room later
	for _, want := range []bool{false, true} {
		_, _, err := book()
		check.Equal(t, is(err, errFailure), true, "the trip is refused: %v", err)
		check.Equal(t, semel.Replayed(err), want, "replayed")
	}
	check.Equal(t, len(hotels.keys), 1, "requests to the hotel")
	if k := airline.keys; len(k) != 3 || k[1] != k[2] || !strings.HasPrefix(k[1], "cancel ") {
		t.Errorf("the airline received %q, want a booking and a cancellation with one key, sent twice", k)
	}
	key = "t2"
	trip, _, err := book()
	check.Result(trip, err)(t, Trip{"7", "7"}, "another trip")
}

var createOrder = semel.Define("create_order", semel.OperationOptions[Order]{})

// docs/upgrading.md: func TestCreateOrderIsPinned
