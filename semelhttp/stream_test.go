package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// wantTombstone checks that retries are told that the operation succeeded, and no
// more.
func wantTombstone(t *testing.T, b *testEngine, srv string, n *atomic.Int64) {
	t.Helper()
	for range 2 {
		wantProblem(t, testRequest{}.do(t, srv), http.StatusConflict, "result_unavailable")
	}
	check.Equal(t, n.Load(), 1, "the handler ran")
	check.Equal(t, b.record(t, "op", "k1").State, store.Succeeded, "the record")
	check.Equal(t, len(b.events.of(event.Tombstone)), 1, "tombstones were observed")
}

// TestFlushedStreamIsATombstone: the first caller gets each part of a stream when
// it is flushed, and the whole in the end.
func TestFlushedStreamIsATombstone(t *testing.T) {
	t.Parallel()
	for name, flush := range map[string]func(http.ResponseWriter) error{
		"controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"flusher":    func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, n, read := newTestEngine(t, semel.Options{}), new(atomic.Int64), make(chan struct{})
			srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
				n.Add(1)
				w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
				w.Header().Set("Content-Length", "10")
				w.Header().Set("X-Kind", "stream")
				w.Header().Set(semelhttp.HeaderReplayed, "true")
				w.WriteHeader(http.StatusCreated)
				w.Header().Set("X-Kind", "later")
				_, _ = io.WriteString(w, "first")
				check.NoError(t, flush(w), "Flush")
				<-read // the client has the first part while the handler runs
				_, _ = io.WriteString(w, "after")
			})
			resp, err := testClient.Do(testRequest{}.request(t, srv))
			check.Require(t, err)
			defer resp.Body.Close()
			part := make([]byte, 5)
			if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != "first" {
				t.Fatalf("the first part is %q, %v", part, err)
			}
			if resp.ContentLength != -1 {
				t.Errorf("Content-Length = %d: the response would be complete before its outcome is stored", resp.ContentLength)
			}
			close(read)
			rest, err := io.ReadAll(resp.Body)
			if string(rest) != "after" || err != nil || resp.StatusCode != http.StatusCreated ||
				resp.Header.Get("X-Kind") != "stream" || resp.Header.Get(semelhttp.HeaderReplayed) != "" {
				t.Errorf("got %d %v, then %q, %v", resp.StatusCode, resp.Header, rest, err)
			}
			wantTombstone(t, b, srv, n)
		})
	}
}

// TestResponseAtTheLimitIsStored: MaxResponse is the largest that is stored.
func TestResponseAtTheLimitIsStored(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, size := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.MaxResponse = 100
		srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", int(size.Load())))
		})
		size.Store(100)
		first := testRequest{}.do(t, srv)
		wantReplay(t, testRequest{}.do(t, srv), first)
		size.Store(101)
		wantFirst(t, testRequest{key: []string{"k2"}}.do(t, srv), http.StatusOK, strings.Repeat("x", 101))
		wantProblem(t, testRequest{key: []string{"k2"}}.do(t, srv), http.StatusConflict, "result_unavailable")
	})
}

// TestAtomicSendsNothingBeforeTheCommit: flushing waits, and the response is stored
// all the same.
func TestAtomicSendsNothingBeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	early := make(chan string, 10)
	protect := check.Must(semelhttp.Atomic(b.Engine, define("op", plain{}), options()))(t)
	large := strings.Repeat("x", 2<<20)
	inner := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Large") != "" {
			_, _ = io.WriteString(w, large)
			early <- "handler returns"
			return
		}
		_, _ = io.WriteString(w, "all ")
		check.NoError(t, http.NewResponseController(w).Flush(), "Flush")
		_, _ = io.WriteString(w, "of it")
		early <- "handler returns"
	}))
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(tattler{w, early}, r)
	}))
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusOK, "all of it")
	if got := <-early; got != "handler returns" {
		t.Errorf("%q came before the handler returned, and so before the COMMIT", got)
	}
	wantReplay(t, testRequest{}.do(t, srv), first)
	for range 2 { // the headers of the two responses
		<-early
	}
	wantFirst(t, testRequest{key: []string{"k2"}, header: http.Header{"X-Large": {"1"}}}.do(t, srv), http.StatusOK, large)
	if got := <-early; got != "handler returns" {
		t.Errorf("too large: %q came before the handler returned", got)
	}
}

// TestTrailersReachTheFirstCallerOnly: they belong to the exchange.
func TestTrailersReachTheFirstCallerOnly(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		o := options()
		o.ReplayHeaders = []string{"X-Sum"}
		srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("X-Sum", "not yet")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-More", "43")
		})
		resp, err := testClient.Do(testRequest{}.request(t, srv))
		check.Require(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if string(body) != "body" || err != nil || resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-More") != "43" {
			t.Errorf("got %q, %v, trailers %v", body, err, resp.Trailer)
		}
		again := testRequest{}.do(t, srv)
		if again.body != "body" || again.header.Get("X-Sum") != "" || again.header.Get("Trailer") != "" || !again.replayed() {
			t.Errorf("replayed %q %v", again.body, again.header)
		}
	})
}

// TestUnstorableResponseHasHappened: only the first caller gets the response, and
// the operation does not run again.
func TestUnstorableResponseHasHappened(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 128<<10) // 2 MiB
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := s.effect(r.Context()); err != nil {
				return err
			}
			w.WriteHeader(http.StatusCreated)
			for pieces := 1000; pieces > 0; pieces-- {
				check.Result(io.WriteString(w, large[:2<<10]))(t, 2<<10, "Write")
			}
			_, err := io.WriteString(w, large)
			return err
		})))
		wantFirst(t, s.ask().do(t, base), http.StatusCreated, strings.Repeat(large[:2<<10], 1000)+large)
		for range 2 {
			wantProblem(t, s.ask().do(t, base), http.StatusConflict, "result_unavailable")
		}
		s.wantHad(t, 1, 1)
		check.Equal(t, s.record().State, store.Succeeded, "the record")
	})
}

// TestStreamedResponseHasHappened, for entry points that can send the response
// before the outcome is stored.
func TestStreamedResponseHasHappened(t *testing.T) {
	t.Parallel()
	onWays(t, whileItRuns, func(t *testing.T, s *protectedSite) { // otherwise nothing is sent before the COMMIT
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := s.effect(r.Context()); err != nil {
				return err
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "raw")
			return http.NewResponseController(w).Flush()
		})))
		wantFirst(t, s.ask().do(t, base), http.StatusOK, "raw")
		wantProblem(t, s.settled(t, base), http.StatusConflict, "result_unavailable")
		s.wantHad(t, 1, 1)
	})
}

// TestHijackIsRefused, before and after a part of the response is written. The handler
// responds in the usual way, and its response is stored.
func TestHijackIsRefused(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			for range 2 {
				if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("Hijack: %v, want it unsupported", err)
				}
				if _, err := io.WriteString(w, "all "); err != nil {
					return err
				}
			}
			return s.effect(r.Context())
		})))
		first := s.ask().do(t, base)
		wantFirst(t, first, http.StatusOK, "all all ")
		wantReplay(t, s.ask().do(t, base), first)
		s.wantHad(t, 1, 1)
	})
}
