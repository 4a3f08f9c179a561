package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// TestEveryEndpointIsDescribed compares the server's paths and methods with the
// description.
func TestEveryEndpointIsDescribed(t *testing.T) {
	t.Parallel()
	var told []string
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			told = append(told, method+" "+path)
		}
	}
	answered := check.Must(server.Endpoints())(t)
	slices.Sort(told)
	slices.Sort(answered)
	check.NoDiff(t, cmp.Diff(answered, told), "endpoints")
}

// promise is the description of an operation's key.
type promise struct {
	Header struct {
		Name     string
		Required bool
	}
	KeyTime   []string
	Retention string
	Replay    string
	Final     []string
}

// promises reads the descriptions of keys, by operation.
func promises(t *testing.T) map[string]promise {
	t.Helper()
	all := make(map[string]promise)
	for _, item := range description(t).Paths.Map() {
		for _, op := range item.Operations() {
			if given, ok := op.Extensions["x-idempotency"]; ok {
				var p promise
				check.Require(t, json.Unmarshal(check.Must(json.Marshal(given))(t), &p), "x-idempotency of %s", op.OperationID)
				all[op.OperationID] = p
			}
		}
	}
	return all
}

// declaration is what a server declares of its keys to clients.
type declaration struct {
	Header   string
	Required bool
	Key      struct{ Time string }
	Seconds  int64 `json:"retention_seconds"`
}

// TestDescribedRetentionIsTheServers compares the retention in the description and
// in the declaration with the server's.
func TestDescribedRetentionIsTheServers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	declared := read[declaration](t, w.client, user{}, "/.well-known/idempotency")
	all := promises(t)
	if len(all) != 4 {
		t.Fatalf("%d operations with a key are described, want 4", len(all))
	}
	for name, p := range all {
		var days int64
		if err := json.Unmarshal([]byte(strings.Trim(p.Retention, "PD")), &days); err != nil {
			t.Fatalf("%s: retention %q is no number of days", name, p.Retention)
		}
		if told := time.Duration(days) * 24 * time.Hour; told != server.Retention || told != time.Duration(declared.Seconds)*time.Second {
			t.Errorf("%s: retention is %v localServer, %d s in the declaration, and %v in the operation",
				name, told, declared.Seconds, server.Retention)
		}
		if p.Header.Name != declared.Header || p.Header.Required != declared.Required || !slices.Contains(p.KeyTime, declared.Key.Time) {
			t.Errorf("%s: %+v localServer, %+v in the declaration", name, p, declared)
		}
	}
}

// TestDescribedReplaysAreWhatHappens repeats each request whose response the
// description calls final, and checks every other response that it documents.
func TestDescribedReplaysAreWhatHappens(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	group := "/v1/groups/" + w.group
	send := func(key, text string) request {
		return request{method: "POST", path: group + "/messages", as: w.ann, key: key, body: `{"text":"` + text + `"}`}
	}
	other := w.newGroup(t, w.ann, "crew")
	poor := w.newGroup(t, w.ann, "crew")
	w.fakePayments.declines(poor)
	final := map[string]map[string]request{
		"boostGroup":  {"created": boost(w.ann, "d", w.group), "payment_declined": boost(w.ann, "e", poor)},
		"createGroup": {"created": creation(w.ann, "a", "crew", w.bob.ID), "unknown_member": creation(w.ann, "b", "crew", 99)},
		"sendMessage": {"created": send("c", "hello")},
		"signUp":      {"created": signUp("f", "eve"), "name_taken": signUp("g", "ann")},
	}
	for name, p := range promises(t) {
		if p.Replay != "identical" || len(p.Final) != len(final[name]) {
			t.Errorf("%s: replay %q of %v, want identical of %d answers", name, p.Replay, p.Final, len(final[name]))
		}
		for _, what := range p.Final {
			asked := final[name][what]
			first, again := w.send(t, asked), w.send(t, asked)
			if code := first.code(); first.Status != http.StatusCreated && code != what {
				t.Errorf("%s: %d %q, want %s", name, first.Status, code, what)
			}
			check.Equal(t, first.Replayed, false, "%s, %s: the first answer is a replay", name, what)
			again.wantReplayOf(t, first)
			check.Equal(t, again.Header.Get("Location"), first.Header.Get("Location"), "%s, %s: the Location", name, what)
			asked.body = strings.Replace(asked.body, `":"`, `":"not `, 1)
			if asked.body == "{}" { // the whole request is in the URL
				asked.path = boost(w.ann, "", other).path
			}
			w.send(t, asked).want(t, http.StatusUnprocessableEntity, "key_reused")
			asked.key = keyOf(t, time.Now().Add(-server.Retention-time.Hour))
			w.send(t, asked).want(t, http.StatusGone, "key_expired")
			asked.key = keyOf(t, time.Now().Add(time.Hour))
			w.send(t, asked).want(t, http.StatusGone, "key_expired")
		}
	}
	fresh := creation(w.ann, keyOf(t, time.Now()), "crew")
	w.send(t, fresh).want(t, http.StatusCreated, "")
	w.send(t, request{method: "GET", path: group + "/messages?after=0&limit=10", as: w.ann}).want(t, http.StatusOK, "")
	for _, path := range []string{"/healthz", "/readyz"} {
		w.send(t, request{method: "GET", path: path}).want(t, http.StatusOK, "")
	}
	a := w.send(t, request{method: "GET", path: "/openapi.yaml"}).want(t, http.StatusOK, "")
	if a.Body != string(server.Description) {
		t.Error("the description that is served is another one")
	}
}

// keyOf returns a UUID version 7 of the given time.
func keyOf(t *testing.T, at time.Time) string {
	t.Helper()
	id := check.Must(uuid.NewV7())(t)
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()
}

// described checks every response of a server, and every successful request,
// against the OpenAPI description.
type described struct {
	t      *testing.T
	router routers.Router
	next   http.Handler
}

// headerDescribed is a response header that a described server adds: "no" if the
// description does not allow the request.
const headerDescribed = "Test-Described"

// describe returns the middleware that checks a server against its description.
func describe(t *testing.T) func(http.Handler) http.Handler {
	t.Helper()
	router := check.Must(parseRoutes())(t)
	return func(next http.Handler) http.Handler { return &described{t, router, next} }
}

// description reads the description and validates it.
func description(t *testing.T) *openapi3.T {
	t.Helper()
	return check.Must(parseDescription())(t)
}

// Both take longer than the start of a server, and nothing changes what they return.
var (
	parseDescription = sync.OnceValues(func() (*openapi3.T, error) {
		doc, err := openapi3.NewLoader().LoadFromData(server.Description)
		if err != nil {
			return nil, err
		}
		return doc, doc.Validate(context.Background())
	})
	parseRoutes = sync.OnceValues(func() (routers.Router, error) {
		doc, err := parseDescription()
		if err != nil {
			return nil, err
		}
		return gorillamux.NewRouter(doc)
	})
)

func (d *described) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, params, err := d.router.FindRoute(r)
	if err != nil || slices.Contains([]string{"/v1/ws", "/v1/events"}, r.URL.Path) { // the page, a stream, or a path or method that the server does not have
		d.next.ServeHTTP(w, r)
		return
	}
	sent, got := new(bytes.Buffer), &taken{ResponseWriter: w}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, sent), r.Body}
	in := &openapi3filter.RequestValidationInput{Request: r.Clone(context.WithoutCancel(r.Context())), PathParams: params, Route: route}
	got.before = func() {
		if allows(in, sent) != nil {
			w.Header().Set(headerDescribed, "no")
		}
	}
	d.next.ServeHTTP(got, r)
	if got.status == 0 {
		return // the connection was closed before the response was complete
	}
	if err := allows(in, sent); err != nil && got.status < http.StatusBadRequest {
		d.t.Errorf("%s %s was answered %d; the description refuses it: %v", r.Method, r.URL, got.status, err)
	}
	if err := answers(in, got); err != nil {
		d.t.Errorf("%s %s: the answer %d is not as described: %v", r.Method, r.URL, got.status, err)
	}
}

func validation() *openapi3filter.Options {
	return &openapi3filter.Options{
		IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, SkipSettingDefaults: true,
		AuthenticationFunc: func(_ context.Context, in *openapi3filter.AuthenticationInput) error {
			if !strings.HasPrefix(in.RequestValidationInput.Request.Header.Get("Authorization"), "Bearer ") {
				return in.NewError(nil)
			}
			return nil
		},
	}
}

// allows validates a request.
func allows(of *openapi3filter.RequestValidationInput, body *bytes.Buffer) error {
	in, o := *of, validation()
	in.Request, in.Options = of.Request.Clone(of.Request.Context()), o
	in.Request.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	if in.Request.Header.Get("Content-Type") == "" {
		in.Request.Header.Set("Content-Type", "application/json") // the server does not ask for it
	}
	o.ExcludeRequestBody = body.Len() == 0 && in.Request.ContentLength > 0 // the server did not read the body
	return openapi3filter.ValidateRequest(in.Request.Context(), &in)
}

// answers validates a response.
func answers(to *openapi3filter.RequestValidationInput, got *taken) error {
	in := &openapi3filter.ResponseValidationInput{RequestValidationInput: to, Status: got.status, Header: got.header, Options: validation()}
	return openapi3filter.ValidateResponse(to.Request.Context(), in.SetBodyBytes(got.body.Bytes()))
}

// taken is a ResponseWriter that also records the response.
type taken struct {
	http.ResponseWriter

	before func() // called before the header is sent
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *taken) WriteHeader(status int) {
	if w.status == 0 {
		w.before()
		w.status, w.header = status, w.Header().Clone()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *taken) Write(text []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.body.Write(text)
	return w.ResponseWriter.Write(text)
}
