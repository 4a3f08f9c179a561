package semelhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// inMemory returns the options of an engine that caches final records.
func inMemory() semel.Options { return semel.Options{CacheBytes: 1 << 20, CacheAge: time.Minute} }

// remembering is a server that has answered key k1 from the cache, so that the edge
// has it cached, too.
func remembering(t *testing.T, b *testEngine, o semelhttp.Options, n *atomic.Int64) (srv string, first answer) {
	t.Helper()
	srv = b.leasedServer(t, define("op", plain{}), o, created(n))
	first = testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, "run 1")
	wantReplay(t, testRequest{}.do(t, srv), first)
	return srv, first
}

// TestCacheAnswersRetries: without the store, and observed like any replay.
func TestCacheAnswersRetries(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, inMemory()), new(atomic.Int64)
	srv, first := remembering(t, b, options(), n)
	calls := b.store.calls.Load()
	b.store.down.Store(true)
	for range 3 {
		wantReplay(t, testRequest{}.do(t, srv), first)
	}
	if asked, seen := b.store.calls.Load()-calls, len(b.events.of(event.Replayed)); asked != 0 || seen != 4 || n.Load() != 1 {
		t.Errorf("the store was asked %d times, %d replays were seen, the handler ran %d times, want 0, 4, 1", asked, seen, n.Load())
	}
}

// TestCacheIsOfOneRequest: a request that differs in any part does not get the
// cached response.
func TestCacheIsOfOneRequest(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, inMemory()), new(atomic.Int64)
	srv, _ := remembering(t, b, options(), n)
	for name, other := range map[string]testRequest{
		"method": {method: http.MethodPatch}, "route": {path: "/ops/7"}, "query": {path: "/ops?x=1"},
		"media type": {mediaType: "text/plain"}, "body": {body: `{"n":2}`}, "shorter body": {body: `{"n":1`},
	} {
		if got := other.do(t, srv); got.status != http.StatusUnprocessableEntity || got.replayed() {
			t.Errorf("another %s got %d %s, want 422", name, got.status, got.body)
		}
	}
	wantFirst(t, testRequest{user: "bob"}.do(t, srv), http.StatusCreated, "run 2")
	wantFirst(t, testRequest{key: []string{"k2"}}.do(t, srv), http.StatusCreated, "run 3")
}

// TestCacheIsOfOneHost: if the host is compared, the second of two hosts does not
// get the response of the first, neither from the record nor from the cache.
func TestCacheIsOfOneHost(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, inMemory()), new(atomic.Int64)
	o := options()
	o.FingerprintHeaders = []string{"host"}
	protect := check.Must(semelhttp.Middleware(b.Engine, define("op", plain{}), o))(t)
	h, mux := protect(created(n)), http.NewServeMux()
	mux.Handle("POST a.example/ops", h)
	mux.Handle("POST b.example/{what}", h)
	send := func(host string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), testRequest{}.request(t, "")
		r.Host = host
		mux.ServeHTTP(w, r)
		return w
	}
	for i := range 3 { // run, from the record, from the edge's cache
		got := send("a.example")
		if replayed := got.Header().Get(semelhttp.HeaderReplayed) == "true"; got.Code != http.StatusCreated || replayed != (i > 0) {
			t.Fatalf("time %d: answered %d, replayed is %t", i, got.Code, replayed)
		}
	}
	if got := send("b.example"); got.Code != http.StatusUnprocessableEntity || n.Load() != 1 {
		t.Errorf("the other host answered %d %q after %d runs, want 422 after 1", got.Code, got.Body, n.Load())
	}
}

// TestCacheOfManyRequests: more callers and keys than the cache has slots get their
// own responses.
func TestCacheOfManyRequests(t *testing.T) {
	t.Parallel()
	const many = 3000
	for name, of := range map[string]func(i int) testRequest{
		"users": func(i int) testRequest { return testRequest{user: fmt.Sprint("user", i)} },
		"keys":  func(i int) testRequest { return testRequest{key: []string{fmt.Sprint("k", i)}} },
	} {
		b, n := newTestEngine(t, semel.Options{CacheBytes: 1 << 26, CacheAge: time.Hour}), new(atomic.Int64)
		protect := check.Must(semelhttp.Middleware(b.Engine, define("op", plain{}), options()))(t)
		h := protect(created(n))
		for range 3 {
			for i := range many {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, of(i).request(t, ""))
				if got, want := w.Body.String(), fmt.Sprintf("run %d", i+1); got != want {
					t.Fatalf("%s: %d got %q, want %q", name, i, got, want)
				}
			}
		}
	}
}

// TestCacheIsAuthorized: a caller without the permission does not get the cached
// response either, and the function gets the request with its body.
func TestCacheIsAuthorized(t *testing.T) {
	t.Parallel()
	b, n, v := newTestEngine(t, inMemory()), new(atomic.Int64), new(revoked)
	o := options()
	bodies := make(chan string, 10)
	o.Reauthorize = func(r *http.Request) error {
		text := make([]byte, 100)
		size, _ := r.Body.Read(text)
		bodies <- string(text[:size])
		return v.reauthorize(r)
	}
	srv, first := remembering(t, b, o, n)
	calls := b.store.calls.Load()
	wantReplay(t, testRequest{}.do(t, srv), first)
	wrong := fmt.Errorf("no")
	v.err.Store(&wrong)
	wantProblem(t, testRequest{}.do(t, srv), http.StatusForbidden, "forbidden")
	if asked := b.store.calls.Load() - calls; asked != 0 || len(bodies) != 3 {
		t.Fatalf("the store was asked %d times, Reauthorize %d times, want 0, 3", asked, len(bodies))
	}
	for range 3 {
		check.Equal(t, <-bodies, `{"n":1}`, "Reauthorize sees the body")
	}
}

// TestCacheOfAPurgedRecord: a record that this process has purged is not answered
// from the cache.
func TestCacheOfAPurgedRecord(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, inMemory()), new(atomic.Int64)
	srv, _ := remembering(t, b, options(), n)
	b.ahead.Store(int64(48 * time.Hour))
	b.purge(t)
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 2")
}

// TestCachedResponsesShareNoMemory: a caller that changes its response changes no
// other.
func TestCachedResponsesShareNoMemory(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, inMemory()), new(atomic.Int64)
	protect := check.Must(semelhttp.Middleware(b.Engine, define("op", plain{}), options()))(t)
	h := protect(created(n))
	for i := range 4 {
		w := httptest.NewRecorder()
		w.Header().Set("X-Trace", "outside")
		h.ServeHTTP(w, testRequest{}.request(t, ""))
		got := w.Header()
		if w.Body.String() != "run 1" || got.Get("Location") != "/ops/7" || got.Get("X-Trace") != "outside" ||
			(got.Get(semelhttp.HeaderReplayed) == "true") != (i > 0) {
			t.Fatalf("answer %d: %q %v", i, w.Body, got)
		}
		for _, values := range got {
			for i := range values {
				values[i] = "changed"
			}
		}
	}
}
