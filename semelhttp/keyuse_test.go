package semelhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestHeaderNameInAnyCase: the name of the header is the same in any case, the key is not.
func TestHeaderNameInAnyCase(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		for i, name := range []string{"Idempotency-Key", "IDEMPOTENCY-KEY", "idempotency-key", "iDeMpOtEnCy-kEy"} {
			got := rawRequest(t, srv, name+": k1\r\n")
			if got.StatusCode != http.StatusCreated || (got.Header.Get(semelhttp.HeaderReplayed) == "true") != (i > 0) {
				t.Errorf("%s: %d, replayed %q", name, got.StatusCode, got.Header.Get(semelhttp.HeaderReplayed))
			}
		}
		if got := rawRequest(t, srv, "Idempotency-Key: K1\r\n"); got.Header.Get(semelhttp.HeaderReplayed) != "" || n.Load() != 2 {
			t.Errorf("K1 is answered as k1, after %d runs", n.Load())
		}
	})
}

// rawRequest sends ann's request with header lines as they are, and returns the
// response, whose body was read.
func rawRequest(t *testing.T, base, lines string) *http.Response {
	t.Helper()
	conn := dialTo(t, base)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /ops HTTP/1.1\r\nHost: h\r\nX-User: ann\r\nContent-Type: application/json\r\n%sContent-Length: 7\r\n\r\n{\"n\":1}", lines)
	resp := check.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

// TestKeysAreOpaque: no part of a key has a meaning, and the parts on both
// sides of a separator are never joined.
func TestKeysAreOpaque(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		runs := 0
		for _, user := range []string{"A", "A:x", "A:x:y", "1:A", "*"} {
			for _, key := range []string{
				"y", "x:y", ":y", "{y}", "y*", "%00", `\x00`, "'; DROP TABLE semel_records; --", "../y", "y%", "*",
				strings.Repeat("%", 255), `"a,b"`, "a;b=c",
			} {
				runs++
				first := testRequest{user: user, key: []string{key}}.do(t, srv)
				wantFirst(t, first, http.StatusCreated, fmt.Sprintf("run %d", runs))
				wantReplay(t, testRequest{user: user, key: []string{key}}.do(t, srv), first)
			}
		}
	})
}

// TestOperationsAreIndependent: a key is another one at another operation.
func TestOperationsAreIndependent(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		one := serve(b, define("one", plain{}), options(), created(n))
		two := serve(b, define("two", plain{}), options(), created(n))
		first, second := testRequest{}.do(t, one), testRequest{body: "other"}.do(t, two)
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantFirst(t, second, http.StatusCreated, "run 2")
		wantReplay(t, testRequest{}.do(t, one), first)
		wantReplay(t, testRequest{body: "other"}.do(t, two), second)
	})
}

// TestAfterRetention: up to its end a key is remembered; later it is a new one,
// or, where it carries its time, too old.
func TestAfterRetention(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		const retention = time.Hour
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{Retention: retention}), options(), created(n))
		first := testRequest{}.do(t, srv)
		b.ahead.Store(int64(retention - time.Minute))
		b.purge(t)
		wantReplay(t, testRequest{}.do(t, srv), first)
		b.ahead.Store(int64(retention + time.Minute))
		b.purge(t)
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 2")

		timed := serve(b, define("timed", plain{KeyTime: semel.UUIDv7Time, Retention: retention}), options(), created(n))
		for name, made := range map[string]time.Time{
			"too old": time.Now().Add(-retention - time.Minute), "from the future": time.Now().Add(time.Hour),
		} {
			got := testRequest{key: []string{uuidv7At(made)}}.do(t, timed)
			wantProblem(t, got, http.StatusGone, "key_expired")
			if n.Load() != 2 {
				t.Errorf("a key that is %s was run", name)
			}
		}
		wantProblem(t, testRequest{key: []string{"no-time-in-it"}}.do(t, timed), http.StatusBadRequest, "key_malformed")
		fresh := testRequest{key: []string{uuidv7At(time.Now().Add(time.Minute))}}
		first = fresh.do(t, timed)
		wantFirst(t, first, http.StatusCreated, "run 3")
		wantReplay(t, fresh.do(t, timed), first)
	})
}

// uuidv7At is a UUID of version 7 that was made at that time.
func uuidv7At(at time.Time) string {
	u := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return u.String()
}
