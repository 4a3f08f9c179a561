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

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestAbandonedWritesReachNoOtherClient: an abandoned goroutine writes into no
// other response, although that may use the memory of its own, and its request
// stays its own.
func TestAbandonedWritesReachNoOtherClient(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	protect, err := semelhttp.Middleware(b.Engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	type kept struct {
		w http.ResponseWriter
		r *http.Request
	}
	var left []kept
	text := func(key string) string { return strings.Repeat(key+" ", 100) }
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
		h.ServeHTTP(w, r)
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

// TestAnotherRunGetsTheOriginalRequest: after a conflict in the database, the
// handler's changes of its request and its writes are gone.
func TestAnotherRunGetsTheOriginalRequest(t *testing.T) {
	t.Parallel()
	n := new(atomic.Int64)
	engine, err := semel.New[semelTx](&conflictStore{Store: memory.New(memory.Options{})}, semel.Options{Survive: store.NoFailure})
	if err != nil {
		t.Fatal(err)
	}
	protect, err := semelhttp.Atomic(engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Add("Link", r.URL.Path+" "+r.Header.Get("X-User")+" "+r.PathValue("id"))
		fmt.Fprintf(w, "%s %d %v", body, n.Add(1), err)
		r.URL.Path, r.Host = "/elsewhere", "elsewhere"
		r.Header["X-User"][0] = "eve"
		r.Header.Set("X-More", "more")
		r.SetPathValue("id", "8")
	})))
	got := testRequest{path: "/ops/7"}.do(t, srv)
	wantFirst(t, got, http.StatusOK, `{"n":1} 2 <nil>`)
	if link := got.header["Link"]; fmt.Sprint(link) != "[/ops/7 ann 7]" {
		t.Errorf("the second run sees %q", link)
	}
}

// conflictStore is a store that aborts its first transaction because of a conflict.
type conflictStore struct {
	*memory.Store
	given atomic.Bool
}

func (c *conflictStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return c.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, stands store.SwapResult) (*store.Change, error) {
		last, err := run(ctx, tx, stands)
		if !c.given.Swap(true) {
			return nil, store.ErrConflict
		}
		return last, err
	})
}

// TestResponseIsWhatTheHandlerWrote: headers that the handler changes after the
// status are not in the response, also if it overwrites a value.
func TestResponseIsWhatTheHandlerWrote(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			for i := range 10 { // more than an ordinary response has
				h.Add("Link", fmt.Sprint(i))
				h.Set(fmt.Sprintf("X-%d", i), "x")
			}
			h["Etag"], h["Vary"] = []string{"a"}, []string{"b", "c"}
			w.WriteHeader(http.StatusCreated)
			h["Etag"][0], h["Vary"][1] = "later", "later"
			h.Set("Location", "later")
			h.Add("Link", "later")
			fmt.Fprint(w, "made")
		})
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "made")
		replay := testRequest{}.do(t, srv)
		wantReplay(t, replay, first)
		for _, got := range []answer{first, replay} {
			h := got.header
			if h.Get("Etag") != "a" || fmt.Sprint(h["Vary"]) != "[b c]" || h.Get("Location") != "" ||
				fmt.Sprint(h["Link"]) != "[0 1 2 3 4 5 6 7 8 9]" || got.replayed() == (h.Get("X-9") == "x") {
				t.Errorf("got %v", h)
			}
		}
	})
}
