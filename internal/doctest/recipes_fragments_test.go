package doctest_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

type (
	Member        struct{ ID, Email string }
	ProviderEvent struct{ ID, Order string }
	Trip          struct{ Flight, Hotel string }

	// mailbox and company remember keys, as mail services and companies do.
	mailbox struct{ keys []string }
	company struct {
		keys    []string
		refuses bool
		lost    bool // the first reply
	}
)

var sendWelcome = semel.Define("send_welcome", semel.OperationOptions[Member]{
	Policy: semel.Keyed(), // AtLeastOnce if the mail service accepts no keys: then a mail may come twice
	Retry:  &semel.Retry{MaxErrors: 10},
})

var (
	signUp       = semel.Define("sign_up", semel.OperationOptions[string]{})
	importLine   = semel.Define("import_line", semel.OperationOptions[string]{})
	bookTrip     = semel.Define("book_trip", semel.OperationOptions[string]{Policy: semel.Keyed()})
	bookFlight   = semel.Define("book_flight", semel.OperationOptions[string]{Policy: semel.Keyed()})
	bookHotel    = semel.Define("book_hotel", semel.OperationOptions[string]{Policy: semel.Keyed()})
	cancelFlight = semel.Define("cancel_flight", semel.OperationOptions[string]{Policy: semel.Keyed()})
)

func (m *mailbox) Send(_ context.Context, key, _ string) (string, error) {
	m.keys = append(m.keys, key)
	if len(m.keys) == 1 {
		return "", errNoAnswer
	}
	return "sent", nil
}

func (c *company) book(_ context.Context, key, _ string) (string, error) {
	c.keys = append(c.keys, "book "+key)
	if c.refuses {
		return "", semel.Final(&semel.Failure{Code: "no_room"})
	}
	return "7", nil
}

func (c *company) cancel(_ context.Context, key, booking string) (string, error) {
	c.keys = append(c.keys, "cancel "+key)
	if c.lost {
		c.lost = false
		return "", errNoAnswer
	}
	return booking, nil
}

// welcomed and mailing contain the fragments of docs/recipes/email.md.
func welcomed(ctx context.Context, engine *semel.Engine[*sql.Tx], key, req string,
	insertMember func(context.Context, *sql.Tx, string) (Member, error),
) (Member, bool, error) {
	member, replayed, err := semel.DoTx(ctx, engine, signUp.Call(semel.Shared(), key, req),
		func(ctx context.Context, tx *sql.Tx) (Member, error) {
			m, err := insertMember(ctx, tx, req)
			if err != nil {
				return m, err
			}
			_, err = semel.EnqueueTx(ctx, engine, tx, sendWelcome.Call(semel.Shared(), m.ID, m), semel.EnqueueOptions{})
			return m, err
		})
	return member, replayed, err
}

func mailing(worker *task.Worker, mail *mailbox) error {
	err := task.Handle(worker, sendWelcome, func(ctx context.Context, m Member) (string, error) {
		key, err := semel.ChildKey(ctx, "mail") // the same in every attempt
		if err != nil {
			return "", err
		}
		return mail.Send(ctx, key, m.Email)
	}, task.HandlerOptions{})
	return err
}

func TestEmailRecipe(t *testing.T) {
	t.Parallel()
	_, engine := onSQLite(t, sendWelcome)
	insert := func(_ context.Context, _ *sql.Tx, email string) (Member, error) {
		return Member{ID: "7", Email: email}, nil
	}
	for _, want := range []bool{false, true} {
		_, replayed, err := welcomed(t.Context(), engine, "k1", "ann@example.com", insert)
		check.Result(replayed, err)(t, want, "the sign-up: replayed")
	}
	mail := new(mailbox)
	worker := must(task.New(engine, task.Options{}))
	check.NoError(t, mailing(worker, mail))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	realtest.Poll(t, "the mail", func() bool {
		r, _, err := admin.Get(t.Context(), engine, "send_welcome", semel.Shared(), "7")
		return err == nil && r.State == store.Succeeded
	})
	stop()
	check.NoError(t, <-done, "the worker")
	if len(mail.keys) != 2 || mail.keys[0] != mail.keys[1] {
		t.Errorf("mails were sent with the keys %q, want one key twice", mail.keys)
	}
}

// received contains the first fragment of docs/recipes/webhooks.md.
func received(w http.ResponseWriter, r *http.Request, webhooks *inbox.Inbox[ProviderEvent], engine *semel.Engine[*sql.Tx], notice ProviderEvent,
	markPaid func(context.Context, *sql.Tx, ProviderEvent) error, saveForOperator func(ProviderEvent, error),
) {
	result := inbox.HandleTx(r.Context(), webhooks, engine, inbox.Message[ProviderEvent]{Producer: "bank", ID: notice.ID, Payload: notice},
		func(ctx context.Context, tx *sql.Tx, e ProviderEvent) error { return markPaid(ctx, tx, e) })
	switch result.Decision {
	case inbox.Redeliver:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case inbox.Reject:
		saveForOperator(notice, result.Err)
		w.WriteHeader(http.StatusNoContent)
	case inbox.Ack:
		w.WriteHeader(http.StatusNoContent) // handled, now or before
	}
}

func TestWebhookInRecipe(t *testing.T) {
	t.Parallel()
	webhooks := must(inbox.New("bank_event", inbox.Options[ProviderEvent]{Group: "shop"}))
	_, engine := onSQLite(t, webhooks.Operation())
	paid := 0
	for range 3 {
		w := httptest.NewRecorder()
		received(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/events", http.NoBody), webhooks, engine, ProviderEvent{"7", "o-17"},
			func(context.Context, *sql.Tx, ProviderEvent) error { paid++; return nil }, func(ProviderEvent, error) {})
		check.Equal(t, w.Code, http.StatusNoContent, "the answer to the provider")
	}
	check.Equal(t, paid, 1, "payments")
}

// sending contains the second fragment of docs/recipes/webhooks.md.
func sending(httpClient *http.Client, url string) outbox.Publisher {
	publisher := outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.Payload))
		if err != nil {
			return err
		}
		r.Header.Set("Idempotency-Key", m.ID) // the same for each repetition
		response, err := httpClient.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= 300 {
			return fmt.Errorf("the receiver answered %s", response.Status)
		}
		return nil
	})
	return publisher
}

func TestWebhookOutRecipe(t *testing.T) {
	t.Parallel()
	status := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.Header.Get(semelhttp.HeaderKey), "e-1", "the key")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	publisher := sending(server.Client(), server.URL)
	check.Fails(t, publisher.Publish(t.Context(), outbox.Message{ID: "e-1"}), "a receiver that is down")
	status = http.StatusNoContent
	check.NoError(t, publisher.Publish(t.Context(), outbox.Message{ID: "e-1"}))
}

// importing contains the fragment of docs/recipes/import.md.
func importing(ctx context.Context, engine *semel.Engine[*sql.Tx], fileID string, lines []string,
	insertLine func(context.Context, *sql.Tx, string) (string, error),
) (report []string, err error) {
	for number, line := range lines {
		call := importLine.Call(semel.ScopeOf("import", fileID), strconv.Itoa(number), line)
		_, _, err := semel.DoTx(ctx, engine, call, func(ctx context.Context, tx *sql.Tx) (string, error) {
			return insertLine(ctx, tx, line) // semel.Final for a line that can never be imported
		})
		var refused *semel.Failure
		if errors.As(err, &refused) {
			report = append(report, fmt.Sprintf("line %d: %s", number, refused.Message))
		} else if err != nil {
			return report, err // run the import of this file again
		}
	}
	return report, nil
}

func TestImportRecipe(t *testing.T) {
	t.Parallel()
	_, engine := onSQLite(t)
	var inserted []string
	broken := true
	insert := func(_ context.Context, _ *sql.Tx, line string) (string, error) {
		switch {
		case line == "bad":
			return "", semel.Final(&semel.Failure{Message: "no price"})
		case line == "c" && broken:
			return "", errNoAnswer
		}
		inserted = append(inserted, line)
		return "", nil
	}
	for _, fails := range []bool{true, false, false} {
		report, err := importing(t.Context(), engine, "f1", []string{"a", "bad", "c"}, insert)
		if (err != nil) != fails || !slices.Equal(report, []string{"line 1: no price"}) {
			t.Errorf("the import reported %q, %v", report, err)
		}
		broken = false
	}
	check.Equal(t, fmt.Sprint(inserted), "[a c]", "lines")
}

// step is a fragment of docs/recipes/saga.md, and booked contains the other.
func step[In, Out any](ctx context.Context, engine *semel.Engine[*sql.Tx], op *semel.Operation[In], name string, in In,
	run func(ctx context.Context, key string, in In) (Out, error),
) (out Out, err error) {
	key, err := semel.ChildKey(ctx, name) // the same in every attempt of the trip
	if err != nil {
		return out, err
	}
	out, _, err = semel.Do(ctx, engine, op.Call(semel.Shared(), key, in), func(ctx context.Context) (Out, error) {
		return run(ctx, key, in)
	})
	return out, err
}

func booked(ctx context.Context, engine *semel.Engine[*sql.Tx], scope semel.Scope, key, req string, airline, hotels *company) (Trip, bool, error) {
	trip, replayed, err := semel.Do(ctx, engine, bookTrip.Call(scope, key, req), func(ctx context.Context) (Trip, error) {
		flight, err := step(ctx, engine, bookFlight, "flight", req, airline.book)
		if err != nil {
			return Trip{}, err
		}
		hotel, err := step(ctx, engine, bookHotel, "hotel", req, hotels.book)
		var refused *semel.Failure
		if errors.As(err, &refused) { // it is stored, so each later attempt receives it, too
			if _, err := step(ctx, engine, cancelFlight, "cancel", flight, airline.cancel); err != nil {
				return Trip{}, err
			}
			return Trip{}, semel.Final(refused)
		}
		return Trip{Flight: flight, Hotel: hotel}, err
	})
	return trip, replayed, err
}

func TestSagaRecipe(t *testing.T) {
	t.Parallel()
	_, engine := onSQLite(t)
	airline, hotels := &company{lost: true}, &company{refuses: true}
	for i, wantReplay := range []bool{false, false, true} {
		_, _, err := booked(t.Context(), engine, semel.ScopeOf("ann"), "t1", "Rome", airline, hotels)
		var refused *semel.Failure
		if is := errors.As(err, &refused); i > 0 && (!is || refused.Code != "no_room") || semel.Replayed(err) != wantReplay {
			t.Errorf("attempt %d: %v", i, err)
		}
		hotels.refuses = false // the refusal stays, also if there is a room later
	}
	check.Equal(t, len(hotels.keys), 1, "requests to the hotel")
	if k := airline.keys; len(k) != 3 || k[1] != k[2] || k[1][:6] != "cancel" {
		t.Errorf("the airline received %q, want a booking and a cancellation with one key, sent twice", k)
	}
	trip, _, err := booked(t.Context(), engine, semel.ScopeOf("ann"), "t2", "Rome", airline, hotels)
	check.Result(trip, err)(t, Trip{"7", "7"}, "another trip")
}
