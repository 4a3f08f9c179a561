package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
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
			protect := check.Must(semelhttp.Middleware(b.Engine, inTxOp(semel.Release), options()))(t)
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
				check.Fails(t, <-over, "a transaction committed after its handler's answer")
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
	other := check.Must(semel.New[semelTx](b.store, semel.Options{Survive: store.NoFailure}))(t)
	theirs := check.Must(runAgain(other))(t)
	ours := check.Must(runAgain(b.Engine))(t)
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
		t.Errorf("the leader received %d %s", w.Code, w.Body)
	}
	if w := send(testRequest{mediaType: "text/plain"}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("another media type got %d %v, want 422", w.Code, w.Header())
	}
}

// sharedWriter is a writer that is used for one request after the other, as those
// of gin and echo are.
type sharedWriter struct{ http.ResponseWriter }

// TestAbandonedHeaderInHTTP2: net/http panics if a header is read after the handler
// has returned; an abandoned goroutine would end the process.
func TestAbandonedHeaderInHTTP2(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	protect := check.Must(semelhttp.Middleware(b.Engine, define("op", plain{}), options()))(t)
	left := make(chan http.ResponseWriter, 1)
	srv := httptest.NewUnstartedServer(protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { left <- w })))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	resp := check.Must(srv.Client().Do(testRequest{}.request(t, srv.URL)))(t)
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

// TestLateAttemptGetsTheCurrentResponse: its client gets the current response, not the
// one that the zombie wrote.
func TestLateAttemptGetsTheCurrentResponse(t *testing.T) {
	t.Parallel()
	b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
	h := func(w http.ResponseWriter, _ *http.Request) {
		run := n.Add(1)
		if run == 1 {
			bar.wait()
			w.Header().Set("Set-Cookie", "zombie=1")
		}
		fmt.Fprintf(w, "run %d", run)
	}
	late := make(chan answer)
	_, first := overtaken(t, b, runAgain, h, bar, late, sendLater(t, late))
	wantFirst(t, first, http.StatusOK, "run 2")
	close(bar.open)
	got := <-late
	wantReplay(t, got, first)
	check.Equal(t, got.header.Get("Set-Cookie"), "", "the zombie's own header came through")
	if len(b.events.of(event.Fenced)) == 0 {
		t.Error("no fenced zombie was observed")
	}
}

// TestLateAttemptGetsTheCurrentRefusal: the same text is the response of another
// attempt, and is marked as a replay.
func TestLateAttemptGetsTheCurrentRefusal(t *testing.T) {
	t.Parallel()
	b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
	refuses := func(e *semel.Engine[semelTx]) (func(http.Handler) http.Handler, error) {
		return semelhttp.Atomic(e, define("op", plain{Policy: semel.Atomic(), Lease: time.Hour}), options())
	}
	h := func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			bar.wait()
		}
		http.Error(w, "taken", http.StatusConflict)
	}
	late := make(chan answer)
	_, first := overtaken(t, b, refuses, h, bar, late, sendLater(t, late))
	wantFirst(t, first, http.StatusConflict, "taken\n")
	close(bar.open)
	wantReplay(t, <-late, first)
	check.Equal(t, n.Load(), 2, "the handler ran")
}

// TestAbandonedWritesReachNoOtherClient: an abandoned goroutine writes into no
// other response, although that may use the memory of its own, and its request
// stays its own.
func TestAbandonedWritesReachNoOtherClient(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	protect := check.Must(semelhttp.Middleware(b.Engine, define("op", plain{}), options()))(t)
	type kept struct {
		w http.ResponseWriter
		r *http.Request
	}
	var left []kept
	text := func(key string) string { return strings.Repeat(key+" ", 100) }
	shared := new(sharedWriter)
	h := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, text(r.Header.Get(semelhttp.HeaderKey)))
		for _, k := range left { // of all exchanges before this one
			k.w.Header().Set("Location", "left behind")
			k.w.WriteHeader(http.StatusTeapot)
			if _, err := io.WriteString(k.w, "left behind"); !errors.Is(err, semelhttp.ErrResponseClosed) {
				t.Errorf("a response that is over takes more: %v", err)
			}
		}
		left = append(left, kept{w, r})
	}))
	for i := range 20 {
		key := fmt.Sprintf("k%d", i)
		r, w := testRequest{key: []string{key}, body: text(key)}.request(t, ""), httptest.NewRecorder()
		shared.ResponseWriter = w
		h.ServeHTTP(shared, r)
		if w.Code != http.StatusOK || w.Body.String() != text(key) || w.Header().Get("Location") != "" {
			t.Fatalf("%s: got %d %q %v", key, w.Code, w.Body, w.Header())
		}
	}
	for i, k := range left {
		if body, err := io.ReadAll(k.r.Body); string(body) != text(fmt.Sprintf("k%d", i)) || err != nil {
			t.Fatalf("the body of request %d is now %q, %v", i, body, err)
		}
	}
}
