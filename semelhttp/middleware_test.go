package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

type plain = semel.OperationOptions[semelhttp.Request]

// barrier holds handlers until it is opened.
type barrier struct{ entered, open chan struct{} }

func newBarrier() *barrier { return &barrier{make(chan struct{}, 100), make(chan struct{})} }

func (b *barrier) wait() {
	b.entered <- struct{}{}
	<-b.open
}

// created responds 201 with the number of the run.
func created(n *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/ops/7")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "run %d", n.Add(1))
	}
}

// both runs test behind Atomic and behind Middleware.
func both(t *testing.T, test func(t *testing.T, serve func(*testEngine, *semel.Operation[semelhttp.Request], semelhttp.Options, http.HandlerFunc) string)) {
	t.Helper()
	t.Run("atomic", func(t *testing.T) {
		t.Parallel()
		test(t, func(b *testEngine, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
			return b.atomicServer(t, op, o, h)
		})
	})
	t.Run("middleware", func(t *testing.T) {
		t.Parallel()
		test(t, func(b *testEngine, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
			return b.leasedServer(t, op, o, h)
		})
	})
}

func TestKeyIsRequired(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		b.store.down.Store(true) // none of these requests uses the store
		asked := b.store.calls.Load()
		got := testRequest{key: []string{}}.do(t, srv)
		wantProblem(t, got, http.StatusBadRequest, "key_missing")
		if f := got.problem(t).Field; f != semelhttp.HeaderKey {
			t.Errorf("field = %q, want the header", f)
		}
		for _, lines := range [][]string{
			{""}, {`""`}, {`"a`}, {"a", "b"}, {"a", "a"}, {`"a"`, `"b"`}, {strings.Repeat("k", 256)}, {"caf\u00e9"},
		} {
			wantProblem(t, testRequest{key: lines}.do(t, srv), http.StatusBadRequest, "key_malformed")
		}
		if n.Load() != 0 || b.store.calls.Load() != asked {
			t.Errorf("the handler ran %d times and the store was asked %d times", n.Load(), b.store.calls.Load()-asked)
		}
		// The same with a valid key runs.
		b.store.down.Store(false)
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")
	})
}

func TestKeyIsOptional(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.Optional = true
		srv := serve(b, define("op", plain{}), o, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if string(body) != `{"n":1}` || err != nil {
				t.Errorf("the handler reads %q, %v", body, err)
			}
			created(n)(w, r)
		})
		wantFirst(t, testRequest{key: []string{}}.do(t, srv), http.StatusCreated, "run 1")
		wantFirst(t, testRequest{key: []string{}}.do(t, srv), http.StatusCreated, "run 2")
		// A client that sends a key believes to be protected.
		wantProblem(t, testRequest{key: []string{""}}.do(t, srv), http.StatusBadRequest, "key_malformed")
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 3")
		wantReplay(t, testRequest{}.do(t, srv), first)
	})
}

// TestAtomicOptionalHasATransaction: the handler finds its transaction with and
// without a key.
func TestAtomicOptionalHasATransaction(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx := &effects{b: b}
	o := options()
	o.Optional = true
	srv := b.atomicServer(t, define("op", plain{}), o, func(_ http.ResponseWriter, r *http.Request) { fx.in(t, r) })
	wantFirst(t, testRequest{key: []string{}}.do(t, srv), http.StatusOK, "")
	wantFirst(t, testRequest{key: []string{}}.do(t, srv), http.StatusOK, "")
	wantEffects(t, fx, 2, 2)
}

// TestFormsOfOneKey: quoted, with parameters, raw and with spaces around, it is one
// operation; in another case it is another.
func TestFormsOfOneKey(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{}), options(), created(n))
	first := testRequest{key: []string{`"a b\"c"`}}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, "run 1")
	for _, line := range []string{`"a b\"c";v=2`, `a b"c`, `   "a b\"c"  `} {
		wantReplay(t, testRequest{key: []string{line}}.do(t, srv), first)
	}
	for i, line := range []string{`a B"c`, `ab"c`, `a b\"c`, `a  b"c`} {
		wantFirst(t, testRequest{key: []string{line}}.do(t, srv), http.StatusCreated, fmt.Sprintf("run %d", i+2))
	}
}

func TestSafeMethodsAreUntouched(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		for i, method := range []string{"GET", "OPTIONS", "GET"} {
			wantFirst(t, testRequest{method: method, user: "-"}.do(t, srv), http.StatusCreated, fmt.Sprintf("run %d", i+1))
		}
		wantFirst(t, testRequest{method: "HEAD", user: "-", key: []string{}}.do(t, srv), http.StatusCreated, "")
		wantFirst(t, testRequest{method: "DELETE"}.do(t, srv), http.StatusCreated, "run 5")
	})
}

// TestScopeIsCheckedBeforeTheClaim: an unidentified caller gets 401 and uses no
// key.
func TestScopeIsCheckedBeforeTheClaim(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		asked := b.store.calls.Load()
		wantProblem(t, testRequest{user: "-", body: strings.Repeat("x", 2<<20)}.do(t, srv), http.StatusUnauthorized, "unauthenticated")
		if n.Load() != 0 || b.store.calls.Load() != asked {
			t.Error("a stranger reached the handler or the store")
		}
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")

		own := options()
		own.ScopeFunc = func(*http.Request) (semel.Scope, error) {
			return semel.Scope{}, fmt.Errorf("check: %w", &semelhttp.Problem{Status: http.StatusForbidden, Code: "blocked"})
		}
		got := testRequest{}.do(t, serve(b, define("other", plain{}), own, created(n)))
		if p := got.problem(t); got.status != http.StatusForbidden || p.Code != "blocked" || p.Title != "Forbidden" {
			t.Errorf("got %d %s, want ScopeFunc's own problem", got.status, got.body)
		}
	})
}

// TestNoScopeIsUnauthenticated: callers without a scope do not share responses.
func TestNoScopeIsUnauthenticated(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.ScopeFunc = func(*http.Request) (semel.Scope, error) { return semel.Scope{}, nil }
		wantProblem(t, testRequest{}.do(t, serve(b, define("op", plain{}), o, created(n))), http.StatusUnauthorized, "unauthenticated")
		if n.Load() != 0 {
			t.Error("the handler ran")
		}
	})
}

func TestTwoUsersOneKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s's, run %d", r.Header.Get("X-User"), n.Add(1))
		})
		ann, bob := testRequest{user: "ann"}.do(t, srv), testRequest{user: "bob"}.do(t, srv)
		wantFirst(t, ann, http.StatusOK, "ann's, run 1")
		wantFirst(t, bob, http.StatusOK, "bob's, run 2")
		wantReplay(t, testRequest{user: "bob"}.do(t, srv), bob)
		wantReplay(t, testRequest{user: "ann"}.do(t, srv), ann)
		// Eve does not learn that ann used the key for something else.
		wantFirst(t, testRequest{user: "eve", body: "other"}.do(t, srv), http.StatusOK, "eve's, run 3")
	})
}

// others are requests that differ from the zero request in one part each.
func others() map[string]testRequest {
	return map[string]testRequest{
		"method":     {method: "PATCH"},
		"path":       {path: "/ops/7"},
		"query":      {path: "/ops?dry=1"},
		"media type": {mediaType: "text/plain"},
		"parameter":  {mediaType: "application/json; v=2"},
		"body":       {body: `{"n":2}`},
		"whitespace": {body: `{"n": 1}`},
		"no body":    {body: " "},
	}
}

func TestAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for _, status := range []int{201, 409} { // Succeeded, and behind Atomic Failed
			b, now := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			now.Store(int64(status))
			srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(int(now.Add(0)))
				now.Store(500) // the handler does not run again
			})
			first := testRequest{}.do(t, srv)
			wantFirst(t, first, status, "")
			for name, other := range others() {
				got := other.do(t, srv)
				wantProblem(t, got, http.StatusUnprocessableEntity, "key_reused")
				if strings.Contains(got.body, "201") || strings.Contains(got.body, "409") {
					t.Errorf("%s: %s tells about the other request", name, got.body)
				}
			}
			wantReplay(t, testRequest{mediaType: "Application/JSON"}.do(t, srv), first)
		}
	})
}

func TestInProgress(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			created(n)(w, r)
		})
		leader := make(chan answer)
		go func() {
			got, err := testRequest{}.send(t, srv)
			if err != nil {
				t.Error(err)
			}
			leader <- got
		}()
		<-bar.entered
		for range 3 {
			got := testRequest{}.do(t, srv)
			wantProblem(t, got, http.StatusConflict, "in_progress")
			if s, err := strconv.Atoi(got.header.Get("Retry-After")); s < 1 || s > 30 || err != nil {
				t.Errorf("Retry-After = %q, want 1 to 30 seconds", got.header.Get("Retry-After"))
			}
		}
		for _, other := range others() {
			got := other.do(t, srv)
			wantProblem(t, got, http.StatusUnprocessableEntity, "key_reused")
		}
		close(bar.open)
		first := <-leader
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantReplay(t, testRequest{}.do(t, srv), first)
	})
}

// TestFollowersWait: if the operation waits, they get the leader's response.
func TestFollowersWait(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
		srv := serve(b, define("op", plain{Wait: time.Minute}), options(), func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			created(n)(w, r)
		})
		const callers = 20
		answers := make(chan answer, callers)
		for range callers {
			go func() {
				got, err := testRequest{}.send(t, srv)
				if err != nil {
					t.Error(err)
				}
				answers <- got
			}()
		}
		<-bar.entered
		close(bar.open)
		firsts := 0
		for range callers {
			got := <-answers
			if got.status != http.StatusCreated || got.body != "run 1" || got.header.Get("Location") != "/ops/7" {
				t.Errorf("got %d %q", got.status, got.body)
			}
			if !got.replayed() {
				firsts++
			}
		}
		if firsts != 1 || n.Load() != 1 {
			t.Errorf("%d answers are not marked as replays, of %d runs; want one of one", firsts, n.Load())
		}
	})
}

// TestStoreDown: requests fail closed, and nothing runs.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		b.store.down.Store(true)
		got := testRequest{}.do(t, srv)
		wantProblem(t, got, http.StatusServiceUnavailable, "unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		wantProblem(t, testRequest{key: []string{`"a`}}.do(t, srv), http.StatusBadRequest, "key_malformed")
		if n.Load() != 0 {
			t.Error("the handler ran")
		}
		b.store.down.Store(false)
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")
	})
}

// TestStoreDownAfterTheEffect: the operation has happened, so its response is sent,
// and it does not run again; the record follows when the store is back.
func TestStoreDownAfterTheEffect(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{RecordTimeout: 1 << 27}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
		b.store.down.Store(true)
		created(n)(w, r)
	})
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, "run 1")
	if late := len(b.events.of(semel.EventLate)); late != 1 {
		t.Errorf("%d late outcomes were observed, want one", late)
	}
	b.store.down.Store(false)
	again := testRequest{}.do(t, srv)
	for again.status == http.StatusConflict && again.problem(t).Code == "in_progress" {
		again = testRequest{}.do(t, srv)
	}
	wantReplay(t, again, first)
	if n.Load() != 1 {
		t.Errorf("the handler ran %d times, want once", n.Load())
	}
}

func TestClosedEngine(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantProblem(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "unavailable")
	})
}

func TestKeyExpired(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{KeyTime: semel.UUIDv7Time}), options(), created(n))
		wantProblem(t, testRequest{key: []string{"01890a5d-ac96-774b-bcce-b302099a8057"}}.do(t, srv), http.StatusGone, "key_expired")
		got := testRequest{key: []string{"no-time-in-it"}}.do(t, srv)
		wantProblem(t, got, http.StatusBadRequest, "key_malformed")
		if n.Load() != 0 {
			t.Error("the handler ran")
		}
		fresh := uuid.Must(uuid.NewV7()).String()
		first := testRequest{key: []string{fresh}}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantReplay(t, testRequest{key: []string{fresh}}.do(t, srv), first)
	})
}

// TestBodyLimit: a body that is too large is refused before the claim, with or
// without a Content-Length.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.MaxBody = 10
		srv := serve(b, define("op", plain{}), o, created(n))
		asked := b.store.calls.Load()
		wantProblem(t, testRequest{body: "12345678901"}.do(t, srv), http.StatusRequestEntityTooLarge, "body_too_large")
		chunked := testRequest{body: "12345678901"}.request(t, srv)
		chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader("12345678901")), -1
		resp, err := testClient.Do(chunked)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("chunked: %d, want 413", resp.StatusCode)
		}
		if n.Load() != 0 || b.store.calls.Load() != asked {
			t.Error("it reached the handler or the store")
		}
		wantFirst(t, testRequest{body: "1234567890"}.do(t, srv), http.StatusCreated, "run 1")
	})
}

// TestUnknown: a handler that failed leaves the effect unknown. The leader and the
// followers are told so, and an operator resolves the record.
func TestUnknown(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{OnError: semel.Keep}), options(), func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header().Set("Set-Cookie", "secret=1")
		http.Error(w, "broken", http.StatusBadGateway)
	})
	got := testRequest{}.do(t, srv)
	wantProblem(t, got, http.StatusServiceUnavailable, "outcome_unknown")
	if got.header.Get("Set-Cookie") != "" || strings.Contains(got.body, "broken") {
		t.Errorf("%v %s: the handler's own answer came through", got.header, got.body)
	}
	got = testRequest{}.do(t, srv)
	wantProblem(t, got, http.StatusConflict, "outcome_unknown")
	if after := got.header.Get("Retry-After"); after != "" {
		t.Errorf("Retry-After = %q, want none: waiting settles nothing", after)
	}
	for _, other := range others() {
		wantProblem(t, other.do(t, srv), http.StatusUnprocessableEntity, "key_reused")
	}
	if n.Load() != 1 {
		t.Errorf("ran %d times, want once", n.Load())
	}

	stands := b.record(t, "op", "k1")
	response := semelhttp.Response{Status: 201, Header: http.Header{"Location": {"/ops/7"}}, Body: []byte("found")}
	_, err := b.Resolve(t.Context(), semel.Resolution{
		ID: stands.ID, To: store.Succeeded, Result: response.Raw(), Actor: "eve", Reason: "it is there",
	})
	if err != nil {
		t.Fatal(err)
	}
	got = testRequest{}.do(t, srv)
	if got.status != 201 || got.body != "found" || got.header.Get("Location") != "/ops/7" || !got.replayed() {
		t.Errorf("after Resolve: %d %q %v", got.status, got.body, got.header)
	}
}

// TestResolvedByAnOperator: an operator's result need not be a response.
func TestResolvedByAnOperator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to     semel.Resolution
		status int
		code   string
	}{
		"a value": {semel.Resolution{To: store.Succeeded, Result: map[string]int{"id": 7}}, http.StatusConflict, "result_unavailable"},
		"failed": {
			semel.Resolution{To: store.Failed, Failure: &semel.Failure{Code: "lost", Message: "the parcel is lost"}},
			http.StatusUnprocessableEntity, "lost",
		},
	} {
		b := newTestEngine(t, semel.Options{})
		srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
		_ = testRequest{}.do(t, srv)
		c.to.ID, c.to.Actor, c.to.Reason = b.record(t, "op", "k1").ID, "eve", "looked"
		if _, err := b.Resolve(t.Context(), c.to); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := testRequest{}.do(t, srv)
		if p := got.problem(t); got.status != c.status || p.Code != c.code {
			t.Errorf("%s: got %d %s, want %d %s", name, got.status, got.body, c.status, c.code)
		}
		if got.replayed() != (c.to.To == store.Failed) {
			t.Errorf("%s: replayed = %v", name, got.replayed())
		}
	}
}

// TestLeasedStatuses: the consequences of a response without InTx.
func TestLeasedStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]store.State{
		200: store.Succeeded, 303: store.Succeeded, 400: store.Succeeded, 404: store.Succeeded, 409: store.Succeeded, 422: store.Succeeded,
		401: store.Pending, 403: store.Pending, 408: store.Pending, 413: store.Pending, 415: store.Pending,
		423: store.Pending, 425: store.Pending, 429: store.Pending,
		500: store.InDoubt, 503: store.InDoubt,
	} {
		for _, onError := range []semel.OnError{semel.Release, semel.Keep} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			srv := b.leasedServer(t, define("op", plain{OnError: onError}), options(), func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprintf(w, "run %d", n.Add(1))
			})
			first := testRequest{client: noRedirect(testClient)}.do(t, srv)
			if got := b.record(t, "op", "k1").State; got != want {
				t.Errorf("%d, keep %d: the record is %v, want %v", status, onError, got, want)
			}
			if want == store.InDoubt {
				wantProblem(t, first, http.StatusServiceUnavailable, "outcome_unknown")
				continue
			}
			wantFirst(t, first, status, "run 1")
			again := testRequest{client: noRedirect(testClient)}.do(t, srv)
			if want == store.Succeeded {
				wantReplay(t, again, first)
			} else {
				wantFirst(t, again, status, "run 2")
			}
		}
	}
}

// TestClassifyKnowsBetter: a status from 500 up can be known to be a refusal.
func TestClassifyKnowsBetter(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	op := define("op", plain{Classify: func(err error) store.Verdict {
		if s, ok := errors.AsType[*semelhttp.StatusError](err); ok && s.Status == http.StatusServiceUnavailable {
			return store.NotCommitted
		}
		return store.Unknown
	}})
	srv := b.leasedServer(t, op, options(), func(w http.ResponseWriter, r *http.Request) {
		if n.Load() == 0 {
			n.Add(1)
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		created(n)(w, r)
	})
	wantFirst(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "not now\n")
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 2")
}

// TestHealedResponse: evidence replaces the response of a leader with an unknown
// effect.
func TestHealedResponse(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	found := semelhttp.Response{Status: 201, Header: http.Header{"Location": {"/ops/7"}, "Set-Cookie": {"s=1"}}, Body: []byte("healed")}
	op := define("op", plain{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) {
		return found.Raw(), true, nil
	})})
	srv := b.leasedServer(t, op, options(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	for i := range 3 {
		got := testRequest{}.do(t, srv)
		if got.status != 201 || got.body != "healed" || got.header.Get("Location") != "/ops/7" || got.header.Get("Set-Cookie") != "" {
			t.Errorf("got %d %q %v", got.status, got.body, got.header)
		}
		if got.replayed() != (i > 0) {
			t.Errorf("answer %d: replayed = %v", i+1, got.replayed())
		}
	}
}

type serveFunc = func(*testEngine, *semel.Operation[semelhttp.Request], semelhttp.Options, http.HandlerFunc) string
