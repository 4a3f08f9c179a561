package semelhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// The benchmarks count what the package adds: subtract Bare from the others. They
// run over a ResponseWriter and a request that cost almost nothing themselves;
// Loopback does the same over a server.

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

// wantStatus checks, outside of the measured time, that s was answered.
func (s *sender) wantStatus(b testing.TB, replayed bool) {
	b.Helper()
	if s.w.status != http.StatusCreated || s.w.size != 256 {
		b.Fatalf("answered %d with %d bytes, want 201 with 256", s.w.status, s.w.size)
	}
	if got := s.w.header.Get(semelhttp.HeaderReplayed) == "true"; got != replayed {
		b.Fatalf("replayed = %v, want %v", got, replayed)
	}
}

// BenchmarkBare has a new key each time, too, so that it can be subtracted from
// First.
func BenchmarkBare(b *testing.B) {
	h, s, n := payment(), newSender(b), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		s.send(h, keyNumber(n))
	}
	s.wantStatus(b, false)
}

func BenchmarkFirst(b *testing.B) {
	h, s, n := protectedPayment(b, semel.Options{}), newSender(b), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		s.send(h, keyNumber(n))
	}
	s.wantStatus(b, false)
}

// BenchmarkBareSameKey is to be subtracted from Replay.
func BenchmarkBareSameKey(b *testing.B) {
	h, s, key := payment(), newSender(b), keyNumber(0)
	b.ReportAllocs()
	for b.Loop() {
		s.send(h, key)
	}
	s.wantStatus(b, false)
}

func BenchmarkReplay(b *testing.B) { replay(b, semel.Options{}) }

// BenchmarkReplayFromMemory is of an engine that caches final records.
func BenchmarkReplayFromMemory(b *testing.B) { replay(b, inMemory()) }

// replay repeats one key.
func replay(b *testing.B, o semel.Options) {
	b.Helper()
	h, s := protectedPayment(b, o), newSender(b)
	key := keyNumber(0)
	s.send(h, key)
	s.wantStatus(b, false)
	b.ReportAllocs()
	for b.Loop() {
		s.send(h, key)
	}
	s.wantStatus(b, true)
}

func BenchmarkFirstParallel(b *testing.B) {
	h := protectedPayment(b, semel.Options{})
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		s := newSender(b)
		for pb.Next() {
			s.send(h, keyNumber(n.Add(1)))
		}
	})
}

func BenchmarkReplayParallel(b *testing.B) {
	h := protectedPayment(b, semel.Options{})
	key := keyNumber(0)
	newSender(b).send(h, key)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		s := newSender(b)
		for pb.Next() {
			s.send(h, key)
		}
	})
}

// BenchmarkLoopback is a request over a connection to a server of net/http: bare,
// for the first time, and as a retry.
func BenchmarkLoopback(b *testing.B) {
	for _, row := range []struct {
		name    string
		handler func(*testing.B) http.Handler
		fresh   bool
	}{
		{"bare", func(*testing.B) http.Handler { return payment() }, true},
		{"first", func(b *testing.B) http.Handler { b.Helper(); return protectedPayment(b, semel.Options{}) }, true},
		{"replay", func(b *testing.B) http.Handler { b.Helper(); return protectedPayment(b, semel.Options{}) }, false},
	} {
		b.Run(row.name, func(b *testing.B) {
			server := httptest.NewServer(row.handler(b))
			b.Cleanup(server.Close)
			loopback(b, server, row.fresh)
		})
	}
}

func loopback(b *testing.B, server *httptest.Server, fresh bool) {
	b.Helper()
	s, n := newSender(b), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if fresh {
			n++
		}
		r := check.Must(http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/payments", bytes.NewReader(s.text)))(b)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(semelhttp.HeaderKey, keyNumber(n))
		resp := check.Must(server.Client().Do(r))(b)
		if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != 256 || resp.StatusCode != http.StatusCreated {
			b.Fatalf("answered %d with %d bytes, %v", resp.StatusCode, got, err)
		}
		_ = resp.Body.Close()
	}
}
