package semelhttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

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
		resp := check.Must(testClient.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace))))(t)
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

// TestControllerReachesTheConnection: deadlines are those of the connection.
func TestControllerReachesTheConnection(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
			check.NoError(t, http.NewResponseController(w).SetWriteDeadline(time.Time{}), "SetWriteDeadline")
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
	protect := check.Must(semelhttp.Atomic(b.Engine, define("op", plain{}), options()))(t)
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
