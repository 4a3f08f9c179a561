package semelhttp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// sized answers with as many bytes as its request's path says, under a length that is
// wrong where the query says one.
func sized(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("id"))
	if wrong := r.URL.Query().Get("length"); wrong != "" {
		w.Header().Set("Content-Length", wrong)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(bytes.Repeat([]byte{'x'}, n))
}

// lengthServer is a server whose responses are seen as they come in.
func lengthServer(t *testing.T, o semel.Options, two bool, around func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	protect := check.Must(semelhttp.Middleware(newTestEngine(t, o).Engine, define("op", plain{}), options()))(t)
	mux := http.NewServeMux()
	mux.Handle("POST /ops/{id}", around(protect(http.HandlerFunc(sized))))
	srv := httptest.NewUnstartedServer(mux)
	srv.EnableHTTP2 = two
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// sentLength returns the Content-Length of a response, and the number of bytes received.
func sentLength(t *testing.T, srv *httptest.Server, a testRequest) (said string, got int64) {
	t.Helper()
	resp, err := srv.Client().Do(a.request(t, srv.URL))
	check.Require(t, err)
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated || len(resp.TransferEncoding) > 0 {
		t.Fatalf("got %s %v after %d bytes, %v", resp.Status, resp.TransferEncoding, n, err)
	}
	return resp.Header.Get("Content-Length"), n
}

// TestContentLengthIsSent by the middleware or by the server, with the right number also if
// the handler has set a wrong one.
func TestContentLengthIsSent(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]semel.Options{"from the store": {}, "from memory": inMemory()} {
		for _, two := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", name, two), func(t *testing.T) {
				t.Parallel()
				srv := lengthServer(t, o, two, func(h http.Handler) http.Handler { return h })
				for _, n := range []int{0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 20_000} {
					for _, query := range []string{"", "?length=7", fmt.Sprintf("?length=%d", n)} {
						a := testRequest{path: fmt.Sprintf("/ops/%d%s", n, query), key: []string{fmt.Sprintf("k%d%s", n, query)}}
						for time := range 4 { // the first, and repeats
							if said, got := sentLength(t, srv, a); said != strconv.Itoa(n) || got != int64(n) {
								t.Errorf("%s, time %d: %q was said, and %d bytes were sent", a.path, time, said, got)
							}
						}
					}
				}
			})
		}
	}
}

// TestOuterMiddlewareMayChangeAShortResponse: a response has no declared length, so that the
// client receives what an outer middleware adds to it. The length of another body is removed.
func TestOuterMiddlewareMayChangeAShortResponse(t *testing.T) {
	t.Parallel()
	srv := lengthServer(t, inMemory(), false, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			h.ServeHTTP(w, r)
			_, _ = io.WriteString(w, "more")
		})
	})
	for time := range 4 {
		if said, got := sentLength(t, srv, testRequest{path: "/ops/10"}); said != "14" || got != 14 {
			t.Errorf("time %d: %q was said, and %d bytes were sent", time, said, got)
		}
	}
}

// TestHTTP10ClientKeepsItsConnection: a client of HTTP/1.0 can reuse a connection only if the
// response has a Content-Length. It has one, whether the middleware or the server sets it. An
// outer handler that flushes a short response before its end is the exception.
func TestHTTP10ClientKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		around func(http.Handler) http.Handler
		kept   func(n int) bool
	}{
		"by itself":   {func(h http.Handler) http.Handler { return h }, func(int) bool { return true }},
		"one flushes": {flushing, func(n int) bool { return n > 2048 }},
	} {
		for memory, o := range map[string]semel.Options{"the store": {}, "memory": inMemory()} {
			t.Run(name+", from "+memory, func(t *testing.T) {
				t.Parallel()
				srv := httptest.NewServer(lengthServer(t, o, false, row.around).Config.Handler)
				t.Cleanup(srv.Close)
				for _, n := range []int{0, 1, 2048, 2049, 20_000} {
					for time := range 4 { // the first run, then replays
						if kept := keptAfter(t, srv, n); kept != row.kept(n) {
							t.Errorf("%d bytes, time %d: the connection is kept: %v, want %v", n, time, kept, row.kept(n))
						}
					}
				}
			})
		}
	}
}

// flushing flushes the response before the server knows its length.
func flushing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		_ = http.NewResponseController(w).Flush()
	})
}

// keptAfter asks for a response of n bytes, and then for another one on the same
// connection, and reports whether there was one.
func keptAfter(t *testing.T, srv *httptest.Server, n int) bool {
	t.Helper()
	conn := dialTo(t, srv.URL)
	defer conn.Close()
	in := bufio.NewReader(conn)
	for time := range 2 {
		_, err := fmt.Fprintf(conn, "POST /ops/%d HTTP/1.0\r\nHost: h\r\nX-User: ann\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n"+
			"Idempotency-Key: \"k%d\"\r\nContent-Length: 7\r\n\r\n{\"n\":1}", n, n)
		if err != nil {
			return false
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil && time > 0 {
			return false
		}
		check.Require(t, err)
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusCreated || len(body) != n {
			t.Fatalf("got %s with %d bytes, %v, want %d", resp.Status, len(body), err, n)
		}
		if resp.Close {
			return false
		}
	}
	return true
}
