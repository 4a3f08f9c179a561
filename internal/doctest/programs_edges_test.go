//go:build fragments

package doctest_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/store/sqlite"
)

// send serves one request with the key "k".
func send(t *testing.T, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set(semelhttp.HeaderKey, "k")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestFragmentsOfHTTP(t *testing.T) {
	_, engine := onSQLite(t)
	user := func(*http.Request) (semel.Scope, error) { return semel.ScopeOf("ann"), nil }
	orders, mail, mux := 0, new(remote), http.NewServeMux()
	insertOrder := func(context.Context, *sql.Tx, string) error { orders++; return nil }
	{
		// docs/http.md: postOrder :=
	}
	// docs/http.md: postMail :=
	for range 2 {
		check.Equal(t, send(t, mux, "/orders", "item=book").Code, http.StatusCreated, "an order")
	}
	check.Equal(t, orders, 1, "orders")
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusAccepted, http.StatusAccepted} {
		check.Equal(t, send(t, mux, "/mails", "to=ann").Code, want, "a mail")
	}
	mail.requireOneKey(t)

	charge := func(p Payment) func(context.Context) (Receipt, error) {
		return func(context.Context) (Receipt, error) { return Receipt{p.Amount}, nil }
	}
	// docs/http.md: handler, err
	check.Require(t, err)
	w := send(t, handler, "/charges", `{"Amount":9}`)
	check.Equal(t, w.Code, http.StatusOK, "the receipt")
	check.Equal(t, strings.TrimSpace(w.Body.String()), `{"Number":9}`, "the receipt")

	refused := func(p Payment) (Payment, error) {
		// docs/http.md: return p, &semelhttp.Problem
	}
	_, err = refused(Payment{})
	p := semelhttp.ProblemOf(err)
	check.Equal(t, p.Code, "amount_invalid", "the problem: %v", err)
}

func TestFragmentsOfConsole(t *testing.T) {
	db, engine := onSQLite(t)
	s, log, mux := sqlite.New(db, sqlite.Options{}), slog.New(slog.DiscardHandler), http.NewServeMux()
	type appUser struct {
		Email  string
		OnCall bool
	}
	sessionOf := func(r *http.Request) (appUser, error) {
		if name, _, ok := r.BasicAuth(); ok {
			return appUser{Email: name}, nil
		}
		return appUser{}, errors.New("no session")
	}
	// docs/console.md: pages, err
	check.Require(t, err)
	for name, status := range map[string]int{"": http.StatusUnauthorized, "ann": http.StatusOK} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/records", nil)
		if name != "" {
			r.SetBasicAuth(name, "")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		check.Equal(t, w.Code, status, "%q: status", name)
	}
	{
		// docs/console.md: sizes :=
		check.Require(t, err)
		// docs/console.md: engines :=
	}
}

// Draft is the payload of the tokens of docs/recipes/forms.md.
type Draft struct{ Opened time.Time }

// docs/recipes/forms.md: var placeTeaOrder

func TestFragmentsOfForms(t *testing.T) {
	_, engine := onSQLite(t, placeTeaOrder.Operation())
	ctx, sessionID, now, mux, runs := t.Context(), "s1", time.Unix(1, 0), http.NewServeMux(), 0
	sessionOf := func(*http.Request) (semel.Scope, error) { return semel.ScopeOf(sessionID), nil }
	placeOrder := func(w http.ResponseWriter, r *http.Request) {
		runs++
		d, err := placeTeaOrder.Payload(r.Context())
		check.Result(d.Opened.Unix(), err)(t, 1, "the payload")
		http.Redirect(w, r, "/orders/17", http.StatusSeeOther)
	}
	{
		// docs/recipes/forms.md: once, err
		check.Require(t, err)
	}
	// docs/recipes/forms.md: token, err
	check.Require(t, err)
	for range 2 {
		w := send(t, mux, "/orders", url.Values{"one_time_token": {token}}.Encode())
		check.Equal(t, w.Header().Get("Location"), "/orders/17", "the response: %d %s", w.Code, w.Body)
	}
	check.Equal(t, runs, 1, "runs")
}

// docs/recipes/payment.md: // paymentAPI

// TestFragmentsOfPayment: the provider receives the child key of the attempt and the record's
// ID, and only its refusal is final.
func TestFragmentsOfPayment(t *testing.T) {
	for status, want := range map[int]error{http.StatusOK: nil, http.StatusPaymentRequired: errFailure, http.StatusTeapot: semel.ErrOutcomeUnknown} {
		_, engine := onSQLite(t)
		var sent, received, record string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			received, record = r.Header.Get(semelhttp.HeaderKey), r.FormValue("metadata[record]")
			w.WriteHeader(status)
			fmt.Fprint(w, `{"id":"ch_1"}`)
		}))
		t.Cleanup(server.Close)
		providerURL, call := server.URL, chargeCard.Call(semel.ScopeOf("ann"), "k", Payment{5})
		type payment struct {
			Amount int
			Charge string
		}
		made, _, err := semel.Do(t.Context(), engine, call, func(ctx context.Context) (p payment, err error) {
			sent = must(semel.ChildKey(ctx, "charge"))
			// docs/recipes/payment.md: if p.Charge, err = charge
			return p, nil
		})
		check.Equal(t, received, sent, "the key")
		check.Equal(t, record, call.ID().String(), "the metadata")
		if !is(err, want) || err == nil && made.Charge != "ch_1" {
			t.Errorf("status %d: %v, %v, want %v", status, made, err, want)
		}
	}
}

func TestFragmentsOfWebhooksThatLeave(t *testing.T) {
	status := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.Header.Get(semelhttp.HeaderKey), "e-1", "the key")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	httpClient, url := server.Client(), server.URL
	// docs/recipes/webhooks.md: publisher :=
	check.Fails(t, publisher.Publish(t.Context(), outbox.Message{ID: "e-1"}), "a receiver that is down")
	status = http.StatusNoContent
	check.NoError(t, publisher.Publish(t.Context(), outbox.Message{ID: "e-1"}))
}

// TestFragmentsOfTheClient: a request with a child key can be sent only within an attempt.
func TestFragmentsOfTheClient(t *testing.T) {
	ctx, url, body := t.Context(), "http://127.0.0.1:1", http.NoBody
	// docs/choosing.md: retrying :=
	check.Require(t, err)
	_, err = retrying.Do(r)
	check.ErrorIs(t, err, semel.ErrInvalid, "a request outside of an attempt")
}
