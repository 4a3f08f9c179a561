package semelhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// effects counts what a handler did, in memory and in its transaction.
type effects struct {
	b *testEngine
	n atomic.Int64
}

// in makes one effect in the transaction that the middleware opened.
func (e *effects) in(t *testing.T, r *http.Request) {
	t.Helper()
	tx, ok := semel.TxOf(r.Context(), e.b.Engine)
	if !ok {
		t.Error("the handler finds no transaction")
		return
	}
	check.NoError(t, tx.Put(fmt.Sprintf("effect/%d", e.n.Add(1)), []byte(r.URL.Path)), "Put")
}

// committed counts the committed effects.
func (e *effects) committed() (n int) {
	for i := range e.n.Load() {
		if _, ok := e.b.store.memory.Value(fmt.Sprintf("effect/%d", i+1)); ok {
			n++
		}
	}
	return n
}

func wantEffects(t *testing.T, e *effects, ran, committed int) {
	t.Helper()
	check.Equal(t, int(e.n.Load()), ran, "the handler ran")
	check.Equal(t, e.committed(), committed, "effects are there")
}

func TestAtomicReplays(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx := &effects{b: b}
	srv := b.atomicServer(t, define("create", semel.OperationOptions[semelhttp.Request]{}), options(),
		func(w http.ResponseWriter, r *http.Request) {
			fx.in(t, r)
			h := w.Header()
			h.Set("Location", "/ops/7")
			h.Set("ETag", `"v1"`)
			h.Set("Content-Type", "application/vnd.ops+json")
			h.Add("Link", `</a>; rel="next", </b>; rel="last"`)
			h.Add("Link", `</c>; rel="up"`)
			h.Add("Set-Cookie", "session=1")
			h.Add("X-Request-Id", "r1")
			h.Set("Date", "Mon, 01 Jan 2001 00:00:00 GMT")
			h.Set("Keep-Alive", "timeout=5")
			for _, name := range []string{semelhttp.HeaderReplayed, strings.ToLower(semelhttp.HeaderReplayed)} {
				h[name] = []string{"true"} // a handler must not set it
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":7}`)
		})
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, `{"id":7}`)
	if first.header.Get("Set-Cookie") != "session=1" || first.header.Get("X-Request-Id") != "r1" {
		t.Errorf("the first caller's headers are %v, want all that the handler set", first.header)
	}
	for range 3 {
		again := testRequest{key: []string{`"k1"`}}.do(t, srv)
		wantReplay(t, again, first)
		if got := again.header["Link"]; len(got) != 2 {
			t.Errorf("replayed Link = %q, want its two lines as they were", got)
		}
		for _, name := range []string{"Set-Cookie", "X-Request-Id", "Keep-Alive"} {
			if got := again.header[name]; got != nil {
				t.Errorf("replayed %s = %q, want none", name, got)
			}
		}
		if strings.Contains(again.header.Get("Date"), "2001") {
			t.Error("the first answer's Date was replayed")
		}
	}
	wantEffects(t, fx, 1, 1)
}

// gzipped is not text and must not be changed.
const gzipped = "\x1f\x8b\x08\x00\xff\x00"

func TestEveryKindOfResultIsReplayed(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
	for name, c := range map[string]struct {
		status int
		body   string
		answer http.HandlerFunc
	}{
		"nothing at all": {200, "", func(http.ResponseWriter, *http.Request) {}},
		"headers alone":  {200, "", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Etag", "1") }},
		"no content":     {204, "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		"accepted":       {202, "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }},
		"see other": {303, "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/ops/7")
			w.WriteHeader(303)
		}},
		"empty body":   {200, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }},
		"null":         {200, "null", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "null") }},
		"type guessed": {200, "<html>", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }},
		"not guessed": {200, "<html>", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "<html>")
		}},
		"in many pieces": {200, "abc", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a"); fmt.Fprint(w, "b", "c") }},
		"copied": {200, "copied", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader("copied and more"), 6))
		}},
		"compressed": {200, gzipped, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, gzipped)
		}},
		"wrong length": {200, "abc", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "999")
			fmt.Fprint(w, "abc")
		}},
		"header set too late": {200, "abc", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "abc")
			w.Header().Set("Etag", "late")
			w.WriteHeader(500)
		}},
		"nearly a megabyte": {200, string(big), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(big) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := &http.Client{
				Transport:     &http.Transport{DisableCompression: true},
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}
			defer raw.CloseIdleConnections()
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			h := func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				c.answer(w, r)
			}
			for _, srv := range []string{
				b.atomicServer(t, define("answer", plain{}), options(), h),
				b.leasedServer(t, define("hold", plain{}), options(), h),
			} {
				first := testRequest{client: raw}.do(t, srv)
				wantFirst(t, first, c.status, c.body)
				wantReplay(t, testRequest{client: raw}.do(t, srv), first)
				if first.header.Get("Etag") == "late" {
					t.Error("a header set after the status was sent")
				}
			}
			check.Equal(t, n.Load(), 2, "runs behind two entry points")
		})
	}
}

// status is a handler that makes its effect and responds with the status that the
// request names, until now is set.
func (e *effects) status(t *testing.T, now *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e.in(t, r)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Location", "/why")
		w.WriteHeader(int(now.Load()))
		fmt.Fprintf(w, "said %d, for the %d. time", now.Load(), e.n.Load())
	}
}

// TestAtomicRollsBackRefusals: a handler's writes are rolled back if it refuses or fails,
// whether its response is stored for good or its key stays free. Which status leads to what
// is in TestFinalResponsesAreAsDocumented.
func TestAtomicRollsBackRefusals(t *testing.T) {
	t.Parallel()
	leased := plain{Policy: semel.Atomic(), Lease: time.Hour, OnError: semel.Keep}
	for _, c := range []struct {
		status  int
		op      plain
		profile semelhttp.Profile
		state   store.State
	}{
		{409, plain{}, semelhttp.Lenient, store.Failed},
		{409, leased, semelhttp.Lenient, store.Failed},
		{403, plain{OnError: semel.Keep}, semelhttp.Lenient, store.Absent},
		{403, leased, semelhttp.Lenient, store.Pending},
		{500, plain{OnError: semel.Keep}, semelhttp.Lenient, store.Absent},
		{500, leased, semelhttp.Lenient, store.Pending},
		{500, plain{}, semelhttp.Stripe, store.Failed},
	} {
		b := newTestEngine(t, semel.Options{})
		fx, now := &effects{b: b}, new(atomic.Int64)
		now.Store(int64(c.status))
		srv := b.atomicServer(t, define("op", c.op), profiled(c.profile), fx.status(t, now))
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, c.status, fmt.Sprintf("said %d, for the 1. time", c.status))
		wantEffects(t, fx, 1, 0)
		check.Equal(t, b.record(t, "op", "k1").State, c.state, "%d %+v: the record", c.status, c.op)
		now.Store(201)
		again := testRequest{}.do(t, srv)
		if c.state.Final() {
			wantReplay(t, again, first)
			wantEffects(t, fx, 1, 0)
		} else {
			wantFirst(t, again, 201, "said 201, for the 2. time")
			wantReplay(t, testRequest{}.do(t, srv), again)
			wantEffects(t, fx, 2, 1)
		}
	}
}

// TestAnotherRunGetsTheOriginalRequest: after a conflict in the database, the
// handler's changes of its request and its writes are gone.
func TestAnotherRunGetsTheOriginalRequest(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.atomicServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Add("Link", r.URL.Path+" "+r.Header.Get("X-User")+" "+r.PathValue("id"))
		fmt.Fprintf(w, "%s %d %v", body, n.Add(1), err)
		r.URL.Path, r.Host = "/elsewhere", "elsewhere"
		r.Header["X-User"][0] = "eve"
		r.Header.Set("X-More", "more")
		r.SetPathValue("id", "8")
	})
	b.store.commit.Store(&storetest.Fault{Rollback: store.ErrConflict})
	got := testRequest{path: "/ops/7"}.do(t, srv)
	wantFirst(t, got, http.StatusOK, `{"n":1} 2 <nil>`)
	if link := got.header["Link"]; fmt.Sprint(link) != "[/ops/7 ann 7]" {
		t.Errorf("the second run sees %q", link)
	}
}
