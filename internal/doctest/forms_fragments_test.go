package doctest_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store/sqlite"
)

// Draft is the payload of the tokens in docs/recipes/forms.md.
type Draft struct{ Opened time.Time }

var placeTeaOrder = onetime.Define[Draft]("place_tea_order", onetime.Options{MaxOpen: 50})

func issueForm(ctx context.Context, engine *semel.Engine[*sql.Tx], sessionID string, now time.Time) (string, error) {
	token, err := placeTeaOrder.Issue(ctx, engine, semel.ScopeOf(sessionID), time.Hour, Draft{Opened: now})
	return token, err
}

func handleForm(mux *http.ServeMux, engine *semel.Engine[*sql.Tx], sessionOf func(*http.Request) (semel.Scope, error), placeOrder func(http.ResponseWriter, *http.Request)) error {
	once, err := semelhttp.FormTx(engine, placeTeaOrder, semelhttp.FormOptions{ScopeFunc: sessionOf})
	mux.Handle("POST /orders", once(http.HandlerFunc(placeOrder)))
	return err
}

// TestFormFragments runs the fragments of docs/recipes/forms.md.
func TestFormFragments(t *testing.T) {
	t.Parallel()
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "form.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	engine := check.Must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Operations: []semel.Declared{placeTeaOrder.Operation()}}))(t)
	mux, runs := http.NewServeMux(), 0
	check.Require(t, handleForm(mux, engine, func(*http.Request) (semel.Scope, error) { return semel.ScopeOf("s1"), nil }, func(w http.ResponseWriter, r *http.Request) {
		runs++
		d, err := placeTeaOrder.Payload(r.Context())
		if err != nil || d.Opened.Year() != 2024 {
			t.Errorf("Payload = %v, %v", d, err)
		}
		http.Redirect(w, r, "/orders/17", http.StatusSeeOther)
	}))
	token := check.Must(issueForm(t.Context(), engine, "s1", time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)))(t)
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(url.Values{"one_time_token": {token}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if text, _ := io.ReadAll(w.Body); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/orders/17" {
			t.Errorf("got %d %s", w.Code, text)
		}
	}
	check.Equal(t, runs, 1, "runs")
}
