package semelhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

func TestKeyIsRequired(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		b.store.down.Store(true) // none of these requests uses the store
		asked := b.store.calls.Load()
		got := testRequest{key: []string{}}.do(t, srv)
		wantProblem(t, got, http.StatusBadRequest, "key_missing")
		if f := got.problem(t).Field; f != semelhttp.HeaderKey {
			t.Errorf("field = %q, want the header", f)
		}
		for _, lines := range [][]string{
			{""}, {`""`}, {`"a`}, {"a", "b"}, {"a", "a"}, {`"a"`, `"b"`}, {strings.Repeat("k", 256)}, {"caf\u00e9"},
		} {
			wantProblem(t, testRequest{key: lines}.do(t, srv), http.StatusBadRequest, "key_malformed")
		}
		if n.Load() != 0 || b.store.calls.Load() != asked {
			t.Errorf("the handler ran %d times and the store was asked %d times", n.Load(), b.store.calls.Load()-asked)
		}
		// The same with a valid key runs.
		b.store.down.Store(false)
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")
	})
}

func TestKeyIsOptional(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.Optional = true
		srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if string(body) != `{"n":1}` || err != nil {
				t.Errorf("the handler reads %q, %v", body, err)
			}
			if _, ok := semel.TxOf(r.Context(), b.Engine); ok != strings.HasSuffix(t.Name(), "/atomic") {
				t.Errorf("the handler finds a transaction: %v", ok)
			}
			created(n)(w, r)
		})
		wantFirst(t, testRequest{key: []string{}}.do(t, srv), http.StatusCreated, "run 1")
		wantFirst(t, testRequest{key: []string{}}.do(t, srv), http.StatusCreated, "run 2")
		// A client that sends a key believes to be protected.
		wantProblem(t, testRequest{key: []string{""}}.do(t, srv), http.StatusBadRequest, "key_malformed")
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 3")
		wantReplay(t, testRequest{}.do(t, srv), first)
	})
}

func TestSafeMethodsAreUntouched(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		for i, method := range []string{"GET", "OPTIONS", "GET"} {
			wantFirst(t, testRequest{method: method, user: "-"}.do(t, srv), http.StatusCreated, fmt.Sprintf("run %d", i+1))
		}
		wantFirst(t, testRequest{method: "HEAD", user: "-", key: []string{}}.do(t, srv), http.StatusCreated, "")
		wantFirst(t, testRequest{method: "DELETE"}.do(t, srv), http.StatusCreated, "run 5")
	})
}

// others are requests that differ from the zero request in one part each.
func others() map[string]testRequest {
	return map[string]testRequest{
		"method":     {method: "PATCH"},
		"path":       {path: "/ops/7"},
		"query":      {path: "/ops?dry=1"},
		"media type": {mediaType: "text/plain"},
		"parameter":  {mediaType: "application/json; v=2"},
		"body":       {body: `{"n":2}`},
		"whitespace": {body: `{"n": 1}`},
		"no body":    {body: " "},
	}
}

// TestAnotherRequestIsRefused, also if the edge has cached the response to the first.
func TestAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for status, o := range map[int]semel.Options{201: {}, 409: {}, 202: inMemory()} { // 409 behind Atomic: Failed
			b, now := newTestEngine(t, o), new(atomic.Int64)
			now.Store(int64(status))
			srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(int(now.Add(0)))
				now.Store(500) // the handler does not run again
			})
			first := testRequest{}.do(t, srv)
			wantFirst(t, first, status, "")
			for range 2 {
				wantReplay(t, testRequest{}.do(t, srv), first)
			}
			for name, other := range others() {
				got := other.do(t, srv)
				wantProblem(t, got, http.StatusUnprocessableEntity, "key_reused")
				if strings.Contains(got.body, "201") || strings.Contains(got.body, "409") {
					t.Errorf("%s: %s tells about the other request", name, got.body)
				}
			}
			wantReplay(t, testRequest{mediaType: "Application/JSON"}.do(t, srv), first)
		}
	})
}

func TestInProgress(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			created(n)(w, r)
		})
		leader := make(chan answer)
		go func() {
			got, err := testRequest{}.send(t, srv)
			check.NoError(t, err)
			leader <- got
		}()
		bar.held(t, leader)
		for range 3 {
			got := testRequest{}.do(t, srv)
			wantProblem(t, got, http.StatusConflict, "in_progress")
			if s, err := strconv.Atoi(got.header.Get("Retry-After")); s < 1 || s > 30 || err != nil {
				t.Errorf("Retry-After = %q, want 1 to 30 seconds", got.header.Get("Retry-After"))
			}
		}
		for _, other := range others() {
			got := other.do(t, srv)
			wantProblem(t, got, http.StatusUnprocessableEntity, "key_reused")
		}
		close(bar.open)
		first := <-leader
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantReplay(t, testRequest{}.do(t, srv), first)
	})
}

// TestFollowersWait: if the operation waits, they get the leader's response.
func TestFollowersWait(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
		srv := serve(b, define("op", plain{Wait: time.Minute}), options(), func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			created(n)(w, r)
		})
		const callers = 20
		answers := make(chan answer, callers)
		for range callers {
			go func() {
				got, err := testRequest{}.send(t, srv)
				check.NoError(t, err)
				answers <- got
			}()
		}
		bar.held(t, answers)
		close(bar.open)
		firsts := 0
		for range callers {
			got := <-answers
			if got.status != http.StatusCreated || got.body != "run 1" || got.header.Get("Location") != "/ops/7" {
				t.Errorf("got %d %q", got.status, got.body)
			}
			if !got.replayed() {
				firsts++
			}
		}
		if firsts != 1 || n.Load() != 1 {
			t.Errorf("%d answers are not marked as replays, of %d runs; want one of one", firsts, n.Load())
		}
	})
}

// TestBodyLimit: a body that is too large is refused before the claim, with or
// without a Content-Length.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.MaxBody = 10
		srv := serve(b, define("op", plain{}), o, created(n))
		asked := b.store.calls.Load()
		wantProblem(t, testRequest{body: "12345678901"}.do(t, srv), http.StatusRequestEntityTooLarge, "body_too_large")
		chunked := testRequest{body: "12345678901"}.request(t, srv)
		chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader("12345678901")), -1
		resp := check.Must(testClient.Do(chunked))(t)
		resp.Body.Close()
		check.Equal(t, resp.StatusCode, http.StatusRequestEntityTooLarge, "chunked")
		if n.Load() != 0 || b.store.calls.Load() != asked {
			t.Error("it reached the handler or the store")
		}
		wantFirst(t, testRequest{body: "1234567890"}.do(t, srv), http.StatusCreated, "run 1")
	})
}
