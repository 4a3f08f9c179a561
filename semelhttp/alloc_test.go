//go:build !race

// The race detector allocates.

package semelhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// The requests and responses of these tests cost almost nothing themselves.

// sink is a ResponseWriter that drops its input.
type sink struct {
	header http.Header
	status int
	size   int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { s.size += len(p); return len(p), nil }

// source is a request's body that can be sent repeatedly.
type source struct{ bytes.Reader }

func (*source) Close() error { return nil }

// sender sends one request repeatedly: a body of 128 bytes under a key.
type sender struct {
	r    *http.Request
	w    *sink
	text []byte
	body *source
	key  []string
}

func newSender(b testing.TB) *sender {
	b.Helper()
	s := &sender{
		text: []byte(`{"account":"acc_7","note":"` + strings.Repeat("n", 99) + `"}`),
		body: new(source), key: []string{""}, w: &sink{header: make(http.Header)},
	}
	s.r = httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/payments", nil)
	s.r.Header = http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"bench"}, "Accept": {"*/*"}, semelhttp.HeaderKey: s.key,
	}
	s.r.ContentLength = int64(len(s.text))
	return s
}

func (s *sender) send(h http.Handler, key string) {
	clear(s.w.header)
	s.w.status, s.w.size = 0, 0
	s.body.Reset(s.text)
	s.r.Body, s.key[0] = s.body, key
	h.ServeHTTP(s.w, s.r)
}

// payment is the bare handler: it reads the body and writes 256 bytes.
func payment() http.Handler {
	text := []byte(`{"id":"pay_1","note":"` + strings.Repeat("n", 232) + `"}`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(text)
	})
}

func oneUser() semelhttp.Options {
	scope := semel.ScopeOf("user_42")
	return semelhttp.Options{ScopeFunc: func(*http.Request) (semel.Scope, error) { return scope, nil }}
}

// protectedPayment is payment behind the middleware, over a memory store.
func protectedPayment(b testing.TB, o semel.Options) http.Handler {
	b.Helper()
	o.Survive = store.NoFailure
	engine := check.Must(semel.New(memory.New(memory.Options{MaxRecords: 1 << 30}), o))(b)
	b.Cleanup(func() {
		check.NoError(b, engine.Close(context.WithoutCancel(b.Context())), "Close")
	})
	protect := check.Must(semelhttp.Middleware(engine, define("create_payment", semel.OperationOptions[semelhttp.Request]{}), oneUser()))(b)
	return protect(payment())
}

// keyNumber is the n-th key, as long as a UUID.
func keyNumber(n int64) string {
	return "8e03978e-40d5-43e8-bc93-" + strconv.FormatInt(100_000_000_000+n, 10)
}

// allocations returns what a request to h allocates, with a new key each time or
// always with the same one. Tests that call it are not parallel, because
// allocations of other tests would count.
func allocations(t *testing.T, h http.Handler, fresh bool) int {
	t.Helper()
	const runs = 1000
	s, keys := newSender(t), []string{keyNumber(0)}
	for n := int64(1); fresh && n <= runs; n++ {
		keys = append(keys, keyNumber(n))
	}
	s.send(h, keyNumber(0)) // so that all later requests are retries
	next := 0
	got := int(testing.AllocsPerRun(runs, func() {
		s.send(h, keys[next%len(keys)])
		next++
	}))
	return got
}

// What the middleware allocates above the bare handler, over the store in memory, is
// part of what it promises to be: a change that adds an allocation gives its reason here.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see allocations
	for name, row := range map[string]struct {
		most  int
		o     semel.Options
		fresh bool
	}{
		// The state of the request, a copy of the request for the handler, a copy of
		// the response's header, and the outcome that the store keeps.
		"first run":          {15, semel.Options{}, true},
		"replay":             {15, semel.Options{}, false},
		"replay from memory": {3, inMemory(), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := allocations(t, protectedPayment(t, row.o), row.fresh) - allocations(t, payment(), false)
			if got > row.most {
				t.Errorf("%d allocations above the bare handler, want at most %d", got, row.most)
			}
		})
	}
}
