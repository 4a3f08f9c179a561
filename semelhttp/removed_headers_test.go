package semelhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// boasts sets headers of all kinds, one of them over an earlier value.
func boasts(h http.Header) {
	h.Set("Location", "/ours")
	h.Set("Set-Cookie", "ours=1")
	h["Vary"][0] = "ours"
	h.Add("Vary", "more")
}

// wantBefore checks that none of these headers is left.
func wantBefore(t *testing.T, h http.Header) {
	t.Helper()
	if h.Get("Set-Cookie") != "" || h.Get("Location") == "/ours" || fmt.Sprint(h["Vary"]) != "[before]" {
		t.Errorf("the handler's headers are left: %v", h)
	}
}

// TestHeadersOfTheLosingResponseAreRemoved: headers of a leader that lost its lease
// are not in the current response.
func TestHeadersOfTheLosingResponseAreRemoved(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	other := check.Must(semel.New[semelTx](b.store, semel.Options{Survive: store.NoFailure}))(t)
	theirs := check.Must(runAgain(other))(t)
	ours := check.Must(runAgain(b.Engine))(t)
	taker := theirs(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/theirs")
		w.WriteHeader(http.StatusCreated)
	}))
	h := ours(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		boasts(w.Header())
		w.WriteHeader(http.StatusAccepted)
		b.ahead.Store(int64(2 * time.Hour))
		taker.ServeHTTP(httptest.NewRecorder(), testRequest{}.request(t, ""))
	}))
	w := httptest.NewRecorder()
	w.Header().Set("Vary", "before")
	h.ServeHTTP(w, testRequest{}.request(t, ""))
	if got := w.Header(); w.Code != http.StatusCreated || got.Get("Location") != "/theirs" {
		t.Errorf("got %d %v, want the headers of the outer handler", w.Code, got)
	}
	wantBefore(t, w.Header())
}
