package semelhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
)

// secret responds 201 with a text that must not be stored, and with lines of that header.
func secret(n *atomic.Int64, header string, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header()[header] = lines
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "canary")
	}
}

// wantNowhere checks that the record contains nothing of the response: neither as
// the outcome nor in the details of a failure.
func wantNowhere(t *testing.T, b *testEngine) {
	t.Helper()
	outcome := b.record(t, "op", "k1").Outcome
	for _, text := range []string{"canary", `"response"`} {
		if bytes.Contains(outcome, []byte(text)) {
			t.Errorf("the record holds %s: %q", text, outcome)
		}
	}
}

// TestNoStoreIsATombstone: the operation has happened, and its response is stored nowhere,
// in whichever spelling the handler has set the header. Other values do not prevent storing.
func TestNoStoreIsATombstone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for _, row := range []struct {
			name  string
			lines []string
			kept  bool // the response is stored
		}{
			{"Cache-Control", []string{"no-store"}, false},
			{"cache-control", []string{"No-Store"}, false},
			{"Cache-Control", []string{"private, max-age=0,no-store , must-revalidate"}, false},
			{"Cache-Control", []string{"private", "no-store"}, false},
			{"Cache-Control", []string{"no-cache"}, true},
			{"Cache-Control", []string{"private, max-age=0"}, true},
			{"Cache-Control", []string{`private="no-store"`}, true},
			{"Cache-Control", []string{"x-no-store"}, true},
		} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			srv := serve(b, define("op", plain{}), options(), secret(n, row.name, row.lines...))
			first := testRequest{}.do(t, srv)
			wantFirst(t, first, http.StatusCreated, "canary")
			if row.kept {
				wantReplay(t, testRequest{}.do(t, srv), first)
				continue
			}
			wantTombstone(t, b, srv, n)
			wantNowhere(t, b)
		}
	})
}

// TestKeepNoStore: with the option the response is stored, with its header.
func TestKeepNoStore(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.KeepNoStore = true
		srv := serve(b, define("op", plain{}), o, secret(n, "Cache-Control", "no-store"))
		first, again := testRequest{}.do(t, srv), testRequest{}.do(t, srv)
		wantReplay(t, again, first)
		check.Equal(t, again.header.Get("Cache-Control"), "no-store", "replayed Cache-Control")
	})
}
