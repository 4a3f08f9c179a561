package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// headerKey is the header with the key, unless Transport.Header names another.
const headerKey = "Idempotency-Key"

// testEngine is an engine over a memory store with a clock that can be moved.
type testEngine struct {
	*semel.Engine[*memory.Tx]
	store *memory.Store
	ahead atomic.Int64 // of the store's clock
}

func newTestEngine(t *testing.T) *testEngine {
	t.Helper()
	e := new(testEngine)
	now := func() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) }
	e.store = memory.New(memory.Options{Now: now})
	engine, err := semel.New(e.store, semel.Options{RecordTimeout: time.Minute, Survive: store.NoFailure})
	check.Require(t, err, "New")
	e.Engine = engine
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		check.NoError(t, engine.Close(ctx), "Close")
	})
	return e
}

// serve returns the URL of a receiver that runs each key once, and responds with the
// number of the run.
func (e *testEngine) serve(t *testing.T, runs *atomic.Int64) string {
	t.Helper()
	once, err := semelhttp.Atomic(e.Engine, semel.Define("charge", semel.OperationOptions[semelhttp.Request]{}), semelhttp.Options{
		ScopeFunc: func(r *http.Request) (semel.Scope, error) { return semel.ScopeOf(r.Header.Get("X-User")), nil },
	})
	check.Require(t, err, "Atomic")
	srv := httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "run %d", runs.Add(1))
	})))
	t.Cleanup(srv.Close)
	return srv.URL
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// seen is a try as it arrived.
type seen struct {
	method string
	keys   []string
	body   string
}

// script answers its tries one after another, the last answer for all that
// follow, and remembers what came.
type script struct {
	mu      sync.Mutex
	answers []http.HandlerFunc
	tries   []seen
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = append(body, " and then "+err.Error()...)
	}
	s.mu.Lock()
	answer := s.answers[min(len(s.tries), len(s.answers)-1)]
	s.tries = append(s.tries, seen{r.Method, r.Header.Values(headerKey), string(body)})
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) arrived() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.tries...)
}

// plays serves the answers over real connections.
func plays(t *testing.T, answers ...http.HandlerFunc) (*script, string) {
	t.Helper()
	s := &script{answers: answers}
	srv := httptest.NewUnstartedServer(s)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Start()
	t.Cleanup(srv.Close)
	return s, srv.URL
}

// status answers with a status and a body.
func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		if code != http.StatusNoContent && code >= http.StatusOK {
			_, _ = io.WriteString(w, http.StatusText(code))
		}
	}
}

// refusing answers with a problem.
func refusing(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// reset breaks the connection instead of answering, after having sent text.
func reset(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = buffered.WriteString(text)
		_ = buffered.Flush()
		if c, ok := conn.(*net.TCPConn); ok && text == "" {
			_ = c.SetLinger(0) // RST
		}
		_ = conn.Close()
	}
}

// hang answers nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// quick has a transport wait little between tries, and as long as needed
// altogether.
func quick(tr *client.Transport) *client.Transport {
	if tr.MinBackoff == 0 {
		tr.MinBackoff, tr.MaxBackoff = time.Millisecond, 5*time.Millisecond
	}
	if tr.Base == nil {
		tr.Base = &http.Transport{}
	}
	if tr.TryTimeout == 0 {
		tr.TryTimeout = time.Minute
	}
	if tr.Budget == 0 {
		tr.Budget = 4 * time.Minute
	}
	return tr
}

// body is a request body that says whether it was closed.
type body struct {
	io.Reader

	once   sync.Once
	closed chan struct{}
}

func newBody(text string) *body { return bodyOf(strings.NewReader(text)) }

func bodyOf(r io.Reader) *body { return &body{Reader: r, closed: make(chan struct{})} }

func (b *body) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// wantClosed waits for it: what sends a body itself, as net/http does, may close it a
// moment after the answer has come.
func (b *body) wantClosed(t *testing.T) {
	t.Helper()
	select {
	case <-b.closed:
	case <-time.After(time.Minute):
		t.Error("the request body is not closed")
	}
}

// post is a POST with that body; without GetBody if it is a *body.
func post(t *testing.T, url string, b io.Reader) *http.Request {
	t.Helper()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, url, b))(t)
	return r
}

// trip sends r and reads what comes.
func trip(t *testing.T, tr *client.Transport, r *http.Request) answer {
	t.Helper()
	resp, err := quick(tr).RoundTrip(r)
	check.Require(t, err, "RoundTrip")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check.NoError(t, err, "read response")
	if c, ok := tr.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// wantSame checks that n tries came, with one key and the same bytes.
func (s *script) wantSame(t *testing.T, n int, text string) string {
	t.Helper()
	tries := s.arrived()
	if len(tries) != n {
		t.Fatalf("%d tries came, want %d: %v", len(tries), n, tries)
	}
	for i, try := range tries {
		if len(try.keys) != 1 || try.keys[0] != tries[0].keys[0] {
			t.Errorf("try %d has the keys %q, the first has %q", i+1, try.keys, tries[0].keys)
		}
		if try.body != text {
			t.Errorf("try %d has the body %.100q, want %.100q", i+1, try.body, text)
		}
	}
	return tries[0].keys[0]
}

func wantFieldError(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *semel.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field || !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("got the error %v, want one about %s", err, field)
	}
}

func (s *script) none(t *testing.T) {
	t.Helper()
	check.Equal(t, len(s.arrived()), 0, "requests were sent")
}
