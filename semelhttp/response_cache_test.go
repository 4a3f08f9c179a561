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
