package failures_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// createdHandler has its effect and answers 201.
func createdHandler(w http.ResponseWriter, _ *http.Request, effect func() error) error {
	if err := effect(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "made")
	return nil
}

// callTwice sends a key two times and returns both answers.
func callTwice(t *testing.T, base, key string) (first, second answer) {
	t.Helper()
	return request(t, base, "ann", key), request(t, base, "ann", key)
}

// A cookie is sent to its first client only.
func cookies[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		http.SetCookie(rw, &http.Cookie{Name: "session", Value: "secret"})
		rw.Header().Set("Location", "/things/1")
		return createdHandler(rw, r, effect)
	})
	first, second := callTwice(t, base, "k")
	wantReplay(t, second, first)
	if first.header.Get("Set-Cookie") == "" || second.header.Get("Set-Cookie") != "" {
		t.Errorf("cookies %q, then %q, want one for the first client only",
			first.header.Get("Set-Cookie"), second.header.Get("Set-Cookie"))
	}
	check.Equal(t, second.header.Get("Location"), "/things/1", "the repeat's Location")
}

// Another user's key is another key, even with the same text.
func otherUsers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		_, err := io.WriteString(rw, "for "+r.Header.Get("X-User"))
		return err
	})
	for _, user := range []string{"ann", "ann:k", "mallory"} {
		if a := request(t, base, user, "k"); a.replayed || a.body != "for "+user {
			t.Errorf("%s got %d %q, replayed %v", user, a.status, a.body, a.replayed)
		}
		w.wantEffects(t, user+"/k", 1)
	}
}

// A body that is copied in, as proxies and file servers do, is stored completely,
// with its status.
func copiedBody[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	base := w.serve(t, by, func(rw http.ResponseWriter, _ *http.Request, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		rw.WriteHeader(http.StatusAccepted)
		_, err := io.Copy(rw, strings.NewReader("copied"))
		return err
	})
	first, second := callTwice(t, base, "k")
	if first.status != http.StatusAccepted || first.body != "copied" {
		t.Errorf("the first client got %d %q", first.status, first.body)
	}
	wantReplay(t, second, first)
	w.wantEffects(t, "ann/k", 1)
}

// A response without a body is replayed too.
func emptyAnswers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	for _, status := range []int{http.StatusOK, http.StatusNoContent, http.StatusSeeOther} {
		key := http.StatusText(status)
		base := w.serve(t, by, func(rw http.ResponseWriter, _ *http.Request, effect func() error) error {
			if status != http.StatusOK {
				rw.WriteHeader(status)
			} else if _, err := rw.Write(nil); err != nil { // 200 without a write
				return err
			}
			return effect()
		})
		first, second := callTwice(t, base, key)
		if first.status != status || first.body != "" {
			t.Errorf("%d: the first client got %d %q", status, first.status, first.body)
		}
		wantReplay(t, second, first)
		w.wantEffects(t, "ann/"+key, 1)
	}
}

// A HEAD has no effect by definition: it reaches the handler and uses no key.
func headRequests[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	n := 0
	base := serve(t, w.protect(t, w.runner, by, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		n++
		rw.WriteHeader(http.StatusOK)
	})))
	for range 2 {
		r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodHead, base+"/ops", http.NoBody))(t)
		r.Header.Set("X-User", "ann")
		r.Header.Set("Idempotency-Key", "k")
		resp := check.Must(testClient.Do(r))(t)
		_ = resp.Body.Close()
	}
	check.Equal(t, n, 2, "the handler was reached")
}

// Trailers belong to one exchange: they are never half of a replay.
func trailers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	base := w.serve(t, by, func(rw http.ResponseWriter, r *http.Request, effect func() error) error {
		rw.Header().Set("Trailer", "X-Sum")
		err := createdHandler(rw, r, effect)
		rw.Header().Set("X-Sum", "42")
		return err
	})
	first, second := callTwice(t, base, "k")
	check.Equal(t, first.body, "made", "the first client got %d", first.status)
	if second.status == http.StatusConflict && strings.Contains(second.body, "result_unavailable") {
		w.wantEffects(t, "ann/k", 1)
		return
	}
	wantReplay(t, second, first)
	if len(second.trailer) != 0 {
		t.Errorf("the replay has trailers %v", second.trailer)
	}
	w.wantEffects(t, "ann/k", 1)
}

// Many streams of one HTTP/2 connection have one effect.
func http2[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	srv := httptest.NewUnstartedServer(w.protect(t, w.runner, by, w.handler(w.engine, by, createdHandler)))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	answers := make(chan answer, 8)
	for range cap(answers) {
		go func() {
			a, err := sendUntilSettled(t.Context(), srv.Client(), srv.URL, "ann", "k")
			check.NoError(t, err, "a stream")
			answers <- a
		}()
	}
	firsts := 0
	for range cap(answers) {
		a := <-answers
		if a.status != http.StatusCreated || a.body != "made" {
			t.Errorf("a stream got %d %q", a.status, a.body)
		}
		if !a.replayed {
			firsts++
		}
	}
	check.Equal(t, firsts, 1, "streams got a first answer")
	w.wantEffects(t, "ann/k", 1)
}

// sendUntilSettled retries while the key is in progress.
func sendUntilSettled(ctx context.Context, c *http.Client, base, user, key string) (answer, error) {
	var a answer
	var err error
	_ = realtest.Retry(ctx, func() bool { // err says more
		a, err = send(ctx, c, base, user, key)
		return err != nil || a.status != http.StatusConflict || !strings.Contains(a.body, "in_progress")
	})
	return a, err
}
