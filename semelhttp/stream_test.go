package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
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
	if n.Load() != 1 {
		t.Errorf("the handler ran %d times, want once", n.Load())
	}
	if r := b.record(t, "op", "k1"); r.State != store.Succeeded {
		t.Errorf("the record is %v, want Succeeded", r.State)
	}
	if got := len(b.events.of(semel.EventTombstone)); got != 1 {
		t.Errorf("%d tombstones were observed, want one", got)
	}
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
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "first")
				if err := flush(w); err != nil {
					t.Errorf("Flush: %v", err)
				}
				<-read // the client has the first part while the handler runs
				_, _ = io.WriteString(w, "after")
			})
			resp, err := testClient.Do(testRequest{}.request(t, srv))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			part := make([]byte, 5)
			if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != "first" {
				t.Fatalf("the first part is %q, %v", part, err)
			}
			if resp.ContentLength != -1 {
				t.Errorf("Content-Length = %d: the response would be complete before its outcome stands", resp.ContentLength)
			}
			close(read)
			rest, err := io.ReadAll(resp.Body)
			if string(rest) != "after" || err != nil || resp.StatusCode != http.StatusCreated || resp.Header.Get("X-Kind") != "stream" {
				t.Errorf("got %d %v, then %q, %v", resp.StatusCode, resp.Header, rest, err)
			}
			wantTombstone(t, b, srv, n)
		})
	}
}

// TestOversizeIsATombstone: the first caller gets the whole response.
func TestOversizeIsATombstone(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 300_000)
	both(t, func(t *testing.T, serve serveFunc) {
		for _, pieces := range []int{1, 1000} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
				n.Add(1)
				w.Header().Set("Content-Type", "text/plain")
				for i := range pieces {
					size := len(large) / pieces
					if k, err := io.WriteString(w, large[i*size:(i+1)*size]); k != size || err != nil {
						t.Errorf("Write = %d, %v", k, err)
					}
				}
			})
			wantFirst(t, testRequest{}.do(t, srv), http.StatusOK, large)
			wantTombstone(t, b, srv, n)
		}
	})
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

func TestHijackedIsATombstone(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
		_ = rw.Flush()
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("Write after Hijack: %v", err)
		}
	})
	wantFirst(t, testRequest{}.do(t, srv), http.StatusAccepted, "raw")
	// The client may be faster than the record.
	for got := (testRequest{}).do(t, srv); got.problem(t).Code == "in_progress"; got = (testRequest{}).do(t, srv) {
	}
	wantTombstone(t, b, srv, n)
}

// TestAtomicSendsNothingBeforeTheCommit: flushing waits, hijacking is refused, and
// the response is stored all the same.
func TestAtomicSendsNothingBeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	early := make(chan string, 10)
	protect, err := semelhttp.Atomic(b.Engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 2<<20)
	inner := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Large") != "" {
			_, _ = io.WriteString(w, large)
			early <- "handler returns"
			return
		}
		_, _ = io.WriteString(w, "all ")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Hijack: %v, want it unsupported", err)
		}
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

// tattler reports when something is sent to the client.
type tattler struct {
	http.ResponseWriter
	told chan<- string
}

func (w tattler) WriteHeader(status int) {
	w.told <- "header"
	w.ResponseWriter.WriteHeader(status)
}

func (w tattler) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestInformationalResponsesAreSentAtOnce: they are not part of the outcome.
func TestInformationalResponsesAreSentAtOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Link", "</next>; rel=next")
			w.WriteHeader(http.StatusCreated)
		})
		var hints []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprintf("%d %s", code, h.Get("Link")))
			return nil
		}}
		req := testRequest{}.request(t, srv)
		resp, err := testClient.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(hints) != 1 || hints[0] != "103 </style.css>; rel=preload" {
			t.Errorf("hints = %q", hints)
		}
		if got := resp.Header["Link"]; resp.StatusCode != 201 || len(got) != 1 || got[0] != "</next>; rel=next" {
			t.Errorf("got %d, Link %q", resp.StatusCode, got)
		}
		again := testRequest{}.do(t, srv)
		if got := again.header["Link"]; again.status != 201 || len(got) != 1 || got[0] != "</next>; rel=next" {
			t.Errorf("replayed %d, Link %q", again.status, got)
		}
	})
}

// TestEarlyHintsAreNotInTheProblem: headers of an informational response are not in
// the problem that is sent at the end.
func TestEarlyHintsAreNotInTheProblem(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusInternalServerError)
	})
	got := testRequest{}.do(t, srv)
	wantProblem(t, got, http.StatusServiceUnavailable, "outcome_unknown")
	if link := got.header["Link"]; link != nil {
		t.Errorf("the problem has Link %q", link)
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
		if err != nil {
			t.Fatal(err)
		}
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

// TestControllerReachesTheConnection: deadlines are those of the connection.
func TestControllerReachesTheConnection(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
				t.Errorf("SetWriteDeadline: %v", err)
			}
		})
		wantFirst(t, testRequest{}.do(t, srv), http.StatusOK, "")
	})
}

// TestNoBodyWhereNoneIsAllowed: as in net/http.
func TestNoBodyWhereNoneIsAllowed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for _, status := range []int{204, 304} {
			b := newTestEngine(t, semel.Options{})
			srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
					t.Errorf("Write with %d: %v", status, err)
				}
			})
			first := testRequest{}.do(t, srv)
			wantFirst(t, first, status, "")
			wantReplay(t, testRequest{}.do(t, srv), first)
		}
	})
}

// TestHeadersSetOutside: the handler sees and may change them, and a replay has
// those of its own request.
func TestHeadersSetOutside(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	protect, err := semelhttp.Atomic(b.Engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	inner := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w.Header().Get("X-Trace") == "" {
			t.Error("the handler does not see the headers set before it")
		}
		w.Header().Del("X-Server")
		w.Header().Add("Vary", "Accept")
		w.WriteHeader(http.StatusCreated)
	}))
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Trace", fmt.Sprint(n.Add(1)))
		w.Header().Set("X-Server", "s")
		w.Header().Set("Vary", "Origin")
		inner.ServeHTTP(w, r)
	}))
	first := testRequest{}.do(t, srv)
	if first.header.Get("X-Trace") != "1" || first.header.Get("X-Server") != "" || fmt.Sprint(first.header["Vary"]) != "[Origin Accept]" {
		t.Errorf("first: %v", first.header)
	}
	again := testRequest{}.do(t, srv)
	if again.header.Get("X-Trace") != "2" || fmt.Sprint(again.header["Vary"]) != "[Origin Accept]" {
		t.Errorf("replay: %v", again.header)
	}
}

// TestHTTP2: the same over HTTP/2, whose header names are lower case.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	protect, err := semelhttp.Middleware(b.Engine, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(protect(created(n)))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	first := testRequest{client: srv.Client()}.do(t, srv.URL)
	wantFirst(t, first, http.StatusCreated, "run 1")
	wantReplay(t, testRequest{client: srv.Client(), key: []string{`"k1"`}}.do(t, srv.URL), first)
	wantProblem(t, testRequest{client: srv.Client(), key: []string{"k1", "k1"}}.do(t, srv.URL), http.StatusBadRequest, "key_malformed")
}

// lazy sends the header with the first bytes, as writers that compress do.
type lazy struct {
	*httptest.ResponseRecorder

	status int
	begun  bool
}

func (l *lazy) WriteHeader(status int) { l.status = status }

func (l *lazy) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.ResponseRecorder.WriteHeader(l.status)
	}
	return l.ResponseRecorder.Write(p)
}

// TestReaderFromIsSentWhole: a response that is sent before its outcome is stored
// has no length, and its original header.
func TestReaderFromIsSentWhole(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	o := options()
	o.MaxResponse = 4
	protect, err := semelhttp.Middleware(b.Engine, define("op", plain{}), o)
	if err != nil {
		t.Fatal(err)
	}
	h := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.Header().Set("Etag", "first")
		w.Header().Set(semelhttp.HeaderReplayed, "true")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Etag", "later")
		_, _ = io.WriteString(w, "0123456789")
	}))
	w := &lazy{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, testRequest{}.request(t, ""))
	got := w.Result().Header
	if got.Get("Content-Length") != "" {
		t.Errorf("Content-Length = %s: the response is complete before its outcome stands", got.Get("Content-Length"))
	}
	if got.Get("Etag") != "first" || got.Get(semelhttp.HeaderReplayed) != "" {
		t.Errorf("was sent %v", got)
	}
}
