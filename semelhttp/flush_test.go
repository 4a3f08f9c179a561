package semelhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// TestChunkedUpstreamIsReplayed: httputil.ReverseProxy flushes at once what an
// upstream sends in chunks.
func TestChunkedUpstreamIsReplayed(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":`)
		_ = http.NewResponseController(w).Flush() // no Content-Length: chunked
		_, _ = io.WriteString(w, `1}`)
	}))
	t.Cleanup(upstream.Close)
	to := check.Must(url.Parse(upstream.URL))(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	srv := b.leasedServer(t, define("op", plain{}), options(), proxy.ServeHTTP)
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, `{"id":1}`)
	wantReplay(t, testRequest{}.do(t, srv), first)
	check.Equal(t, n.Load(), 1, "the upstream was asked")
}

// TestStreamTypesAreSentAtOnce by a flush, also those of the option.
func TestStreamTypesAreSentAtOnce(t *testing.T) {
	t.Parallel()
	for _, o := range []struct {
		types       []string
		contentType string
		out         bool
	}{
		{nil, "text/event-stream", true},
		{nil, "application/grpc+proto", false},
		{nil, "text/plain", false},
		{[]string{"Text/Plain"}, "text/plain; charset=utf-8", true},
		{[]string{"*"}, "", true},
	} {
		b := newTestEngine(t, semel.Options{})
		options := options()
		options.StreamTypes = o.types
		srv := b.leasedServer(t, define("op", plain{}), options, func(w http.ResponseWriter, _ *http.Request) {
			if o.contentType != "" {
				w.Header().Set("Content-Type", o.contentType)
			}
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
		})
		_ = testRequest{}.do(t, srv)
		again := testRequest{}.do(t, srv)
		if got := again.status == http.StatusConflict; got != o.out {
			t.Errorf("%v, %q: the retry got %d %s, want it sent before its end: %v", o.types, o.contentType, again.status, again.body, o.out)
		}
	}
}

// TestStatusVerdict: the application says what a status proves.
func TestStatusVerdict(t *testing.T) {
	t.Parallel()
	o := options()
	o.StatusVerdict = func(status int) store.Verdict {
		switch status {
		case http.StatusTooManyRequests:
			return store.Unknown
		case http.StatusServiceUnavailable:
			return store.NotCommitted
		default:
			return store.Committed
		}
	}
	for _, row := range []struct {
		status, first, again int
		state                store.State
		runs                 int64
	}{
		{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusConflict, store.InDoubt, 1},
		{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusServiceUnavailable, store.Pending, 2},
		{http.StatusBadGateway, http.StatusBadGateway, http.StatusBadGateway, store.Succeeded, 1},
		{http.StatusForbidden, http.StatusForbidden, http.StatusForbidden, store.Succeeded, 1},
	} {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := b.leasedServer(t, define("op", plain{}), o, func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			w.WriteHeader(row.status)
		})
		first, again := testRequest{}.do(t, srv), testRequest{}.do(t, srv)
		if first.status != row.first || again.status != row.again || n.Load() != row.runs {
			t.Errorf("%d: answered %d, then %d, after %d runs; want %d, %d, %d", row.status, first.status, again.status, n.Load(), row.first, row.again, row.runs)
		}
		check.Equal(t, b.record(t, "op", "k1").State, row.state, "%d: the record", row.status)
	}
	if d := declared(t, o, semelhttp.Terms{Retention: 1 << 40}); len(d.NeverStored) != 1 || d.NeverStored[0] != http.StatusServiceUnavailable {
		t.Errorf("never stored: %v, want 503", d.NeverStored)
	}
}
