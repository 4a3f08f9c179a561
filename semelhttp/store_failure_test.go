package semelhttp_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

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
		check.Equal(t, n.Load(), 0, "the handler ran")
		b.store.down.Store(false)
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")
	})
}

// TestStoreDownAfterTheEffect: the operation has happened, so its response is sent,
// and it does not run again; the record follows when the store is back.
func TestStoreDownAfterTheEffect(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{RecordTimeout: time.Second}), new(atomic.Int64)
	srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
		b.store.down.Store(true)
		created(n)(w, r)
	})
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, "run 1")
	check.Equal(t, len(b.events.of(event.Late)), 1, "late outcomes were observed")
	b.store.down.Store(false)
	wantReplay(t, untilRecorded(t, srv, "unavailable", "in_progress"), first)
	check.Equal(t, n.Load(), 1, "the handler ran")
}

// untilRecorded sends a request again while the response is a problem with one of the codes, and
// returns the next response. A call of the store is unavailable if a slow machine exceeds the
// engine's limit for it.
func untilRecorded(t *testing.T, srv string, codes ...string) (got answer) {
	t.Helper()
	realtest.Poll(t, "the outcome", func() bool {
		got = testRequest{}.do(t, srv)
		return got.status < 400 || !slices.Contains(codes, got.problem(t).Code)
	})
	return got
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
	check.Equal(t, n.Load(), 1, "ran")

	current := b.record(t, "op", "k1")
	response := semelhttp.Response{Status: 201, Header: http.Header{"Location": {"/ops/7"}}, Body: []byte("found")}
	check.Must(admin.Resolve(t.Context(), b, admin.Resolution{
		ID: current.ID, To: store.Succeeded, Result: response.Raw(), Actor: "eve", Reason: "it is there",
	}))(t)
	got = testRequest{}.do(t, srv)
	if got.status != 201 || got.body != "found" || got.header.Get("Location") != "/ops/7" || !got.replayed() {
		t.Errorf("after Resolve: %d %q %v", got.status, got.body, got.header)
	}
}

// TestResolvedByAnOperator: an operator's result need not be a response.
func TestResolvedByAnOperator(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	srv := b.leasedServer(t, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	_ = testRequest{}.do(t, srv)
	check.Must(admin.Resolve(t.Context(), b, admin.Resolution{
		ID: b.record(t, "op", "k1").ID, To: store.Succeeded, Result: map[string]int{"id": 7}, Actor: "eve", Reason: "looked",
	}))(t)
	wantProblem(t, testRequest{}.do(t, srv), http.StatusConflict, "result_unavailable")
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
		check.Equal(t, got.replayed(), (i > 0), "answer %d: replayed", i+1)
	}
}
