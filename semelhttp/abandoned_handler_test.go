package semelhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// slowClient calls a function while a response is written to it.
type slowClient struct {
	*httptest.ResponseRecorder

	meanwhile func()
}

func (c *slowClient) Write(p []byte) (int, error) {
	c.meanwhile()
	return c.ResponseRecorder.Write(p)
}

// TestAbandonedTransactionChangesNoResponse: a transaction is rolled back, or ends,
// after the handler has returned. Another request may use its memory by then.
func TestAbandonedTransactionChangesNoResponse(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"rolled back": errDomain, "comes to its end": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestEngine(t, semel.Options{})
			protect, err := semelhttp.Middleware(b.Engine, inTxOp(semel.Release), options())
			if err != nil {
				t.Fatal(err)
			}
			text := func(key string) string { return strings.Repeat(key+" ", 100) }
			begun, goOn, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			h := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusConflict) // a refusal needs no transaction
				_, _ = io.WriteString(w, text(r.Header.Get(semelhttp.HeaderKey)))
				if r.Header.Get(semelhttp.HeaderKey) != "first" {
					return
				}
				go func() {
					_, err := semel.InTx(r.Context(), b.Engine, func(context.Context, semelTx) (int, error) {
						close(begun)
						<-goOn
						return 0, outcome
					})
					over <- err
				}()
				<-begun
			}))
			w := &slowClient{ResponseRecorder: httptest.NewRecorder()}
			w.meanwhile = func() {
				close(goOn)
				if err := <-over; err == nil {
					t.Error("a transaction committed after its handler's answer")
				}
				for range 10 {
					h.ServeHTTP(httptest.NewRecorder(), testRequest{key: []string{"other"}}.request(t, ""))
				}
			}
			h.ServeHTTP(w, testRequest{key: []string{"first"}}.request(t, ""))
			if w.Body.String() != text("first") {
				t.Errorf("the first was sent %q", w.Body)
			}
		})
	}
}

// TestRetryIsComparedWithTheOriginalRequest: a leader that has lost its lease gets
// the outcome of another process. What it changed in its request has no influence.
func TestRetryIsComparedWithTheOriginalRequest(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, inMemory())
	other, err := semel.New[semelTx](b.store, semel.Options{Survive: store.NoFailure})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := runAgain(other)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := runAgain(b.Engine)
	if err != nil {
		t.Fatal(err)
	}
	taker := theirs(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	h := ours(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b.ahead.Store(int64(2 * time.Hour))
		taker.ServeHTTP(httptest.NewRecorder(), testRequest{}.request(t, ""))
		r.Header.Set("Content-Type", "text/plain")
	}))
	send := func(a testRequest) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, a.request(t, ""))
		return w
	}
	if w := send(testRequest{}); w.Code != http.StatusCreated {
		t.Errorf("the leader was told %d %s", w.Code, w.Body)
	}
	if w := send(testRequest{mediaType: "text/plain"}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("another media type got %d %v, want 422", w.Code, w.Header())
	}
}

// sharedWriter is a writer that is used for one request after the other, as those
// of gin and echo are.
type sharedWriter struct{ http.ResponseWriter }

// TestAbandonedHeadersReachNoOtherClient: a header that an abandoned goroutine sets
// is not in the next caller's response.
func TestAbandonedHeadersReachNoOtherClient(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	protect, err := semelhttp.Middleware(b.Engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	var left http.ResponseWriter
	h := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if left != nil {
			left.Header().Set("Set-Cookie", "session=of the first caller")
		}
		left = w
	}))
	pooled := new(sharedWriter)
	for _, key := range []string{"k1", "k2"} {
		w := httptest.NewRecorder()
		pooled.ResponseWriter = w
		h.ServeHTTP(pooled, testRequest{key: []string{key}}.request(t, ""))
		if got := w.Header().Get("Set-Cookie"); got != "" {
			t.Errorf("%s was sent %q, which was left behind by another request", key, got)
		}
	}
}

// TestAbandonedHeaderInHTTP2: net/http panics if a header is read after the handler
// has returned; an abandoned goroutine would end the process.
func TestAbandonedHeaderInHTTP2(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	protect, err := semelhttp.Middleware(b.Engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan http.ResponseWriter, 1)
	srv := httptest.NewUnstartedServer(protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { left <- w })))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	resp, err := srv.Client().Do(testRequest{}.request(t, srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatal(resp.Proto)
	}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("a goroutine that was left behind panics: %v", p)
		}
	}()
	srv.Close() // the handler has returned
	(<-left).Header().Set("X-Late", "late")
}
