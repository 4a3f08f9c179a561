package doctest_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// consoleUser is a user of an application.
type consoleUser struct {
	Email  string
	OnCall bool
}

// consoleMux mounts the console as docs/console.md shows it.
func consoleMux(engine semel.Runner, mux *http.ServeMux, log *slog.Logger, sessionOf func(*http.Request) (consoleUser, error)) error {
	pages, err := console.Handler([]console.Engine{{Name: "shop", Runner: engine}}, console.Options{
		Authenticate: func(r *http.Request) (console.Actor, error) {
			user, err := sessionOf(r) // of the application
			return console.Actor{Name: user.Email, Reveal: user.OnCall, Write: user.OnCall}, err
		},
		Audit: func(ctx context.Context, e console.Event) error {
			log.LogAttrs(ctx, slog.LevelInfo, "console", slog.String("actor", e.Actor), slog.Any("action", e.Action),
				slog.String("reason", e.Reason), slog.Any("records", e.Records))
			return nil
		},
	})
	mux.Handle("/console/", http.StripPrefix("/console", pages))
	return err
}

// TestConsoleFragment: the console of the page asks the application for the actor.
func TestConsoleFragment(t *testing.T) {
	t.Parallel()
	engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	mux := http.NewServeMux()
	check.Require(t, consoleMux(engine, mux, slog.New(slog.DiscardHandler), func(r *http.Request) (consoleUser, error) {
		name, _, ok := r.BasicAuth()
		if !ok {
			return consoleUser{}, errors.New("no session")
		}
		return consoleUser{Email: name}, nil
	}))
	for name, status := range map[string]int{"": http.StatusUnauthorized, "ann": http.StatusOK} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/records", nil)
		if name != "" {
			r.SetBasicAuth(name, "")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		check.Equal(t, w.Code, status, "%q: status", name)
	}
}
