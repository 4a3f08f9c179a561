package semelhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semelgo/semel"
)

// TestHTTP10ClientKeepsItsConnection, which it can only where it is told how long a
// response is: also of those whose length the middleware leaves to the server. Something
// outside that flushes before the server can tell the length of a short one costs it the
// connection.
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
					for time := range 4 { // the first, and repeats
						if kept := keptAfter(t, srv, n); kept != row.kept(n) {
							t.Errorf("%d bytes, time %d: the connection is kept: %v, want %v", n, time, kept, row.kept(n))
						}
					}
				}
			})
		}
	}
}

// flushing flushes what was written, before the server can know that it is all.
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
		if err != nil {
			t.Fatal(err)
		}
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
