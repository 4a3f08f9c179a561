package semelhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

type order struct {
	Item string `json:"item"`
}

type receipt struct {
	ID   int       `json:"id"`
	Item string    `json:"item"`
	At   time.Time `json:"at"`
	Any  any       `json:"any"`
	note string    // not stored, so not in a response
}

// shop is a typed endpoint over b.
type shop struct {
	semelhttp.Endpoint[order, receipt]
	runs atomic.Int64
	fail error
}

func newShop(b *testEngine, o semel.OperationOptions[order]) *shop {
	s := new(shop)
	s.Endpoint = semelhttp.Endpoint[order, receipt]{
		Operation: semel.Define("order", o),
		Decode:    decodeOrder,
		Run: func(ctx context.Context, c semel.Call, in order) (receipt, bool, error) {
			return semel.DoTx(ctx, b.Engine, c, func(_ context.Context, tx semelTx) (receipt, error) {
				run := s.runs.Add(1)
				if err := tx.Put(fmt.Sprint("order/", run), []byte(in.Item)); err != nil {
					return receipt{}, err
				}
				return receipt{ID: int(run), Item: in.Item, At: time.Now(), Any: int64(1) << 60, note: "secret"}, s.fail
			})
		},
		Render: func(w http.ResponseWriter, _ *http.Request, v receipt) {
			w.Header().Set("Location", fmt.Sprint("/orders/", v.ID))
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "%d %s %s %v %s", v.ID, v.Item, v.At, v.Any, v.note)
		},
	}
	return s
}

func decodeOrder(r *http.Request) (in order, err error) {
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return in, fmt.Errorf("decode order: %w", err)
	}
	if in.Item == "" {
		return in, &semelhttp.Problem{Status: http.StatusUnprocessableEntity, Code: "no_item", Field: "item"}
	}
	return in, nil
}

func (s *shop) serve(t *testing.T, o semelhttp.Options) string {
	t.Helper()
	h, err := semelhttp.Handle(s.Endpoint, o)
	check.Require(t, err, "Handle")
	return serve(t, h)
}

const tea = `{"item":"tea"}`

// TestEndpointRendersTheStoredValue: the first caller's value has a part that is
// not stored, and the response does not have it.
func TestEndpointRendersTheStoredValue(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	s := newShop(b, semel.OperationOptions[order]{})
	srv := s.serve(t, options())
	first := testRequest{body: tea}.do(t, srv)
	if first.status != http.StatusCreated || !strings.HasPrefix(first.body, "1 tea ") || strings.Contains(first.body, "secret") {
		t.Errorf("got %d %q", first.status, first.body)
	}
	wantFirst(t, first, 201, first.body)
	for range 3 {
		wantReplay(t, testRequest{body: tea}.do(t, srv), first)
	}
	// The fingerprint is of the decoded value.
	wantReplay(t, testRequest{body: `{ "item": "tea" }`, mediaType: "text/json"}.do(t, srv), first)
	wantProblem(t, testRequest{body: `{"item":"milk"}`}.do(t, srv), http.StatusUnprocessableEntity, "key_reused")
	check.Equal(t, s.runs.Load(), 1, "ran")
}

// TestEndpointRendersAHealedValue: a record that never had a response gets the same
// one.
func TestEndpointRendersAHealedValue(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	s := newShop(b, semel.OperationOptions[order]{})
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Operation = semel.Define("order", semel.OperationOptions[order]{
		Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) {
			return receipt{ID: 7, Item: "tea", At: at, Any: "found"}, true, nil
		}),
	})
	s.Run = func(ctx context.Context, c semel.Call, _ order) (receipt, bool, error) {
		return semel.Do(ctx, b.Engine, c, func(context.Context) (receipt, error) {
			s.runs.Add(1)
			return receipt{}, errors.New("the answer was lost")
		})
	}
	srv := s.serve(t, options())
	want := "7 tea 2020-01-02 03:04:05 +0000 UTC found "
	healed := testRequest{body: tea}.do(t, srv)
	if healed.status != http.StatusCreated || healed.body != want {
		t.Errorf("healed: %d %q, want %q", healed.status, healed.body, want)
	}
	wantReplay(t, testRequest{body: tea}.do(t, srv), healed)
	check.Equal(t, s.runs.Load(), 1, "ran")
}

func TestEndpointJSON(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	s := newShop(b, semel.OperationOptions[order]{})
	s.Render = nil
	srv := s.serve(t, options())
	first := testRequest{body: tea}.do(t, srv)
	if first.status != http.StatusOK || !strings.HasPrefix(first.body, `{"id":1,"item":"tea","at":"`) ||
		first.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %q %v", first.status, first.body, first.header)
	}
	wantReplay(t, testRequest{body: tea}.do(t, srv), first)
}

// TestEndpointChecksBeforeTheClaim: an error in the request is answered before the
// store is used, and is not stored.
func TestEndpointChecksBeforeTheClaim(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	s := newShop(b, semel.OperationOptions[order]{})
	o := options()
	o.MaxBody = 100
	srv := s.serve(t, o)
	b.store.down.Store(true)
	asked := b.store.calls.Load()
	wantProblem(t, testRequest{body: tea, key: []string{}}.do(t, srv), 400, "key_missing")
	malformed := testRequest{body: tea, key: []string{`"`}}.do(t, srv)
	wantProblem(t, malformed, 400, "key_malformed")
	check.Equal(t, malformed.problem(t).Field, semelhttp.HeaderKey, "the field")
	wantProblem(t, testRequest{body: tea, user: "-"}.do(t, srv), 401, "unauthenticated")
	wantProblem(t, testRequest{body: `{"item":`}.do(t, srv), 400, "body_invalid")
	wantProblem(t, testRequest{body: `{"item":"` + strings.Repeat("x", 100) + `"}`}.do(t, srv), 413, "body_too_large")
	got := testRequest{body: `{"item":""}`}.do(t, srv)
	if p := got.problem(t); got.status != 422 || p.Code != "no_item" || p.Field != "item" || p.Title != "Unprocessable Entity" {
		t.Errorf("got %d %s, want Decode's own problem", got.status, got.body)
	}
	if s.runs.Load() != 0 || b.store.calls.Load() != asked {
		t.Error("it reached the operation or the store")
	}
	b.store.down.Store(false)
	if got := (testRequest{body: tea}).do(t, srv); got.status != http.StatusCreated || got.replayed() {
		t.Errorf("corrected: %d %s", got.status, got.body)
	}
}

// TestEndpointFailures: every caller gets a stored failure; a problem that is not
// stored is sent as it is, and the key may be retried.
func TestEndpointFailures(t *testing.T) {
	t.Parallel()
	unknownItem := &semel.Failure{Code: "unknown_item", Message: "there is no tea", Details: json.RawMessage(`{"item":"tea"}`)}
	problem := &semelhttp.Problem{Status: http.StatusNotFound, Code: "no_shop", Detail: "the shop is closed"}
	for name, c := range map[string]struct {
		err    error
		refuse func(*semel.Failure) *semelhttp.Problem
		status int
		code   string
		detail string
		kept   bool
	}{
		"kept failure":          {semel.Final(unknownItem), nil, 422, "unknown_item", "there is no tea", true},
		"kept, told otherwise":  {semel.Final(unknownItem), toGone, 410, "gone", `{"item":"tea"}`, true},
		"kept, wrapped":         {semel.Final(fmt.Errorf("insert: %w", unknownItem)), nil, 422, "unknown_item", "there is no tea", true},
		"kept problem":          {semel.Final(problem), nil, 422, "failed", "no_shop: the shop is closed", true},
		"problem":               {problem, nil, 404, "no_shop", "the shop is closed", false},
		"problem, wrapped":      {fmt.Errorf("order: %w", semel.NotCommitted(problem)), nil, 404, "no_shop", "the shop is closed", false},
		"failure, not kept":     {unknownItem, nil, 500, "internal", "", false},
		"some error":            {errors.New("password=hunter2"), nil, 500, "internal", "", false},
		"another key's trouble": {fmt.Errorf("reserve: %w", semel.ErrInProgress), nil, 500, "internal", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestEngine(t, semel.Options{})
			s := newShop(b, semel.OperationOptions[order]{})
			s.fail, s.Refuse = c.err, c.refuse
			srv := s.serve(t, options())
			first := testRequest{body: tea}.do(t, srv)
			p := first.problem(t)
			if first.status != c.status || p.Status != c.status || p.Code != c.code {
				t.Errorf("got %d %s, want %d %s", first.status, first.body, c.status, c.code)
			}
			if c.detail != "" && p.Detail != c.detail {
				t.Errorf("detail = %q, want %q", p.Detail, c.detail)
			}
			if first.replayed() || strings.Contains(first.body, "hunter2") {
				t.Errorf("first: %v %s", first.header, first.body)
			}
			if _, found := b.store.memory.Value("order/1"); found {
				t.Error("the failed operation's write is there")
			}
			s.fail = nil
			again := testRequest{body: tea}.do(t, srv)
			if c.kept {
				wantReplay(t, again, first)
			} else if again.status != http.StatusCreated || again.replayed() {
				t.Errorf("the retry got %d %s, want it to run", again.status, again.body)
			}
		})
	}
}

func toGone(f *semel.Failure) *semelhttp.Problem {
	return &semelhttp.Problem{Status: http.StatusGone, Code: "gone", Detail: string(f.Details)}
}

// TestProvenFailureMayBeRetried: a function that says that nothing happened, and chose no
// problem, gets its client told to retry with the same key.
func TestProvenFailureMayBeRetried(t *testing.T) {
	t.Parallel()
	nothing := errors.New("password=hunter2")
	for name, c := range map[string]struct {
		o   semel.OperationOptions[order]
		err error
		tx  bool
	}{
		"marked":                   {err: semel.NotCommitted(nothing)},
		"classified":               {o: semel.OperationOptions[order]{Classify: func(error) store.Verdict { return store.NotCommitted }}, err: nothing},
		"marked in a transaction":  {err: semel.NotCommitted(nothing), tx: true},
		"marked, before its lease": {o: semel.OperationOptions[order]{Policy: semel.Atomic(), Lease: time.Hour}, err: semel.NotCommitted(nothing), tx: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestEngine(t, semel.Options{})
			s := newShop(b, c.o)
			s.fail = c.err
			if !c.tx {
				s.Run = func(ctx context.Context, call semel.Call, _ order) (receipt, bool, error) {
					return semel.Do(ctx, b.Engine, call, func(context.Context) (receipt, error) { return receipt{}, s.fail })
				}
			}
			srv := s.serve(t, options())
			got := testRequest{body: tea}.do(t, srv)
			wantProblem(t, got, http.StatusServiceUnavailable, "unavailable")
			if got.header.Get("Retry-After") != "1" || strings.Contains(got.body, "hunter2") || !strings.Contains(got.body, "no effect") {
				t.Errorf("got %v %s, want a second, and that there was no effect", got.header, got.body)
			}
			s.fail = nil
			if again := (testRequest{body: tea}).do(t, srv); again.status != http.StatusCreated || again.replayed() {
				t.Errorf("the retry got %d %s, want it to run", again.status, again.body)
			}
		})
	}
}

// TestEndpointUnknown: an unknown effect takes precedence over the function's own
// problem.
func TestEndpointUnknown(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	s := newShop(b, semel.OperationOptions[order]{})
	s.Run = func(ctx context.Context, c semel.Call, _ order) (receipt, bool, error) {
		return semel.Do(ctx, b.Engine, c, func(context.Context) (receipt, error) {
			return receipt{}, &semelhttp.Problem{Status: http.StatusBadRequest, Code: "no"}
		})
	}
	srv := s.serve(t, options())
	wantProblem(t, testRequest{body: tea}.do(t, srv), http.StatusServiceUnavailable, "outcome_unknown")
	wantProblem(t, testRequest{body: tea}.do(t, srv), http.StatusConflict, "outcome_unknown")
	check.Equal(t, b.record(t, "order", "k1").State, store.InDoubt, "the record")
}

func TestEndpointOptionalAndScopes(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	s := newShop(b, semel.OperationOptions[order]{})
	o := options()
	o.Optional = true
	srv := s.serve(t, o)
	for i, a := range []testRequest{
		{body: tea, key: []string{}},
		{body: tea, key: []string{}},
		{body: tea, user: "ann"},
		{body: tea, user: "bob"},
	} {
		if got := a.do(t, srv); got.status != 201 || got.replayed() || !strings.HasPrefix(got.body, fmt.Sprint(i+1, " tea")) {
			t.Errorf("request %d got %d %q", i+1, got.status, got.body)
		}
	}
}
