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
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// keyedBy are options whose key is found by fn.
func keyedBy(fn func(*http.Request, []byte) (string, error)) semelhttp.Options {
	o := options()
	o.KeyFunc = fn
	return o
}

// everyWay runs test behind Atomic, behind Middleware and behind Handle, whose
// operations are all named op; each answers 201 with "run N".
func everyWay(t *testing.T, test func(t *testing.T, serve func(*testEngine, semelhttp.Options, *atomic.Int64) string)) {
	t.Helper()
	both(t, func(t *testing.T, serve serveFunc) {
		test(t, func(b *testEngine, o semelhttp.Options, n *atomic.Int64) string {
			return serve(b, define("op", plain{}), o, created(n))
		})
	})
	t.Run("endpoint", func(t *testing.T) {
		t.Parallel()
		test(t, func(b *testEngine, o semelhttp.Options, n *atomic.Int64) string {
			s := newShop(b, semel.OperationOptions[order]{})
			s.Operation = semel.Define("op", semel.OperationOptions[order]{})
			s.Render = func(w http.ResponseWriter, r *http.Request, v receipt) {
				n.Store(int64(v.ID) - 1)
				created(n)(w, r)
			}
			return s.serve(t, o)
		})
	})
}

// TestKeyFromAField: the key is in the body, the header is ignored, and another value of
// another field is another request.
func TestKeyFromAField(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, serve func(*testEngine, semelhttp.Options, *atomic.Int64) string) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, keyedBy(semelhttp.KeyField("order")), n)
		tea := testRequest{key: []string{}, body: `{"order":"o-1","item":"tea"}`}
		first := tea.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantReplay(t, tea.do(t, srv), first)
		tea.key = []string{"malformed\u00e9", "twice"}
		wantReplay(t, tea.do(t, srv), first)
		check.Equal(t, b.record(t, "op", "o-1").Key, "o-1", "the record is under")
		milk := testRequest{key: []string{}, body: `{"order":"o-1","item":"milk"}`}
		wantProblem(t, milk.do(t, srv), http.StatusUnprocessableEntity, "key_reused")
		milk.body = `{"order":"o-2","item":"milk"}`
		wantFirst(t, milk.do(t, srv), http.StatusCreated, "run 2")
		milk.user = "bob"
		wantFirst(t, milk.do(t, srv), http.StatusCreated, "run 3")
	})
}

// TestKeyFuncRefuses: a bad key is refused before the store is called, and the problem names
// the field.
func TestKeyFuncRefuses(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, serve func(*testEngine, semelhttp.Options, *atomic.Int64) string) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := keyedBy(semelhttp.KeyField("order"))
		o.MaxBody = 1000
		srv := serve(b, o, n)
		asked := b.store.calls.Load()
		for body, want := range map[string]struct {
			status int
			code   string
		}{
			`{"item":"tea"}`:                               {400, "key_missing"},
			`{"order":"","item":"tea"}`:                    {400, "key_missing"},
			`{"order":null,"item":"tea"}`:                  {400, "key_missing"},
			`{"order":true,"item":"tea"}`:                  {400, "key_malformed"},
			`{"order":1.5,"item":"tea"}`:                   {400, "key_malformed"},
			`{"order":["a"],"item":"tea"}`:                 {400, "key_malformed"},
			`{"order":"` + strings.Repeat("k", 256) + `"}`: {400, "key_malformed"},
			`{"order":"a","order":"b","item":"tea"}`:       {400, "body_invalid"},
			`{"order":"a","Order":"b","item":"tea"}`:       {400, "body_invalid"},
			`{"ORDER":"a","item":"tea"}`:                   {400, "body_invalid"},
			`["o-1"]`:                                      {400, "body_invalid"},
			`tea`:                                          {400, "body_invalid"},
			strings.Repeat(" ", 1001):                      {413, "body_too_large"},
		} {
			wantProblem(t, testRequest{body: body}.do(t, srv), want.status, want.code)
		}
		wantProblem(t, testRequest{user: "-", body: "tea"}.do(t, srv), http.StatusUnauthorized, "unauthenticated")
		if b.store.calls.Load() != asked || n.Load() != 0 {
			t.Error("it reached the store or the operation")
		}
	})
}

// TestKeyFuncErrorNamesNoHeader: the problem of a key that does not come from the header
// does not name the header.
func TestKeyFuncErrorNamesNoHeader(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		timed := define("op", plain{KeyTime: semel.UUIDv7Time})
		got := testRequest{body: `{"id":"o-1"}`}.do(t, serve(b, timed, keyedBy(semelhttp.KeyField("id")), created(n)))
		wantProblem(t, got, http.StatusBadRequest, "key_malformed")
		if p := got.problem(t); p.Field != "" || !strings.Contains(p.Detail, "carries no time") {
			t.Errorf("the problem is %+v", p)
		}
		if p := (testRequest{}).do(t, serve(b, timed, options(), created(n))).problem(t); p.Field != semelhttp.HeaderKey {
			t.Errorf("the problem of a key in the header is %+v", p)
		}
	})
}

// TestKeyFuncMayBeOptional: a request without the field runs, with its body.
func TestKeyFuncMayBeOptional(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := keyedBy(semelhttp.KeyField("/order/id"))
		o.Optional = true
		srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); len(body) == 0 || err != nil {
				t.Errorf("the handler reads %q, %v", body, err)
			}
			created(n)(w, r)
		})
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 2")
		first := testRequest{body: `{"order":{"id":7}}`}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 3")
		wantReplay(t, testRequest{body: `{"order":{"id":7}}`}.do(t, srv), first)
		check.Equal(t, b.record(t, "op", "7").Key, "7", "the record is under")
	})
}

// TestNoFieldNoRecord: behind Middleware a request without a key, which needs none, creates
// no record.
func TestNoFieldNoRecord(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	o := keyedBy(semelhttp.KeyField("id"))
	o.Optional = true
	srv := b.leasedServer(t, define("op", plain{}), o, created(n))
	asked := b.store.calls.Load()
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")
	check.Equal(t, b.store.calls.Load(), asked, "the store was asked about a request without a key")
}

// TestCustomKeyFunc: it sees the request, may read its body, and its error
// is answered.
func TestCustomKeyFunc(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, serve func(*testEngine, semelhttp.Options, *atomic.Int64) string) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, keyedBy(func(r *http.Request, body []byte) (string, error) {
			read, err := io.ReadAll(r.Body)
			if err != nil || string(read) != string(body) {
				return "", fmt.Errorf("read %q, %w", read, err)
			}
			switch key := r.Header.Get("X-Order"); key {
			case "own":
				return "", fmt.Errorf("look: %w", &semelhttp.Problem{Status: http.StatusTeapot, Code: "teapot"})
			case "error":
				return "", errors.New("password=hunter2")
			default:
				return key, nil
			}
		}), n)
		with := func(order string) testRequest {
			return testRequest{body: `{"item":"tea"}`, header: http.Header{"X-Order": {order}}}
		}
		first := with("caf\u00e9").do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantReplay(t, with("caf\u00e9").do(t, srv), first)
		if got := with("own").do(t, srv); got.status != http.StatusTeapot || got.problem(t).Code != "teapot" {
			t.Errorf("got %d %s, want KeyFunc's own problem", got.status, got.body)
		}
		got := with("error").do(t, srv)
		wantProblem(t, got, http.StatusBadRequest, "key_malformed")
		if strings.Contains(got.body, "hunter2") {
			t.Errorf("%s tells the error's text", got.body)
		}
	})
}
