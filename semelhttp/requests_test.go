package semelhttp_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// testRequest is a request; its zero fields are ann's POST /ops of {"n":1} with key
// k1.
type testRequest struct {
	method, path, user, body, mediaType string
	key                                 []string // header lines; nil: k1
	header                              http.Header
	client                              *http.Client
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a testRequest) request(t *testing.T, base string) *http.Request {
	t.Helper()
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	r := check.Must(http.NewRequestWithContext(t.Context(), or(a.method, "POST"), base+or(a.path, "/ops"),
		strings.NewReader(or(a.body, `{"n":1}`))))(t)
	maps.Copy(r.Header, a.header)
	if user := or(a.user, "ann"); user != "-" {
		r.Header.Set("X-User", user)
	}
	r.Header.Set("Content-Type", or(a.mediaType, "application/json"))
	r.Header[semelhttp.HeaderKey] = a.key
	if a.key == nil {
		r.Header[semelhttp.HeaderKey] = []string{"k1"}
	}
	return r
}

func (a testRequest) send(t *testing.T, base string) (answer, error) {
	t.Helper()
	client := testClient
	if a.client != nil {
		client = a.client
	}
	resp, err := client.Do(a.request(t, base))
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

func (a testRequest) do(t *testing.T, base string) answer {
	t.Helper()
	got, err := a.send(t, base)
	check.Require(t, err, "%+v", a)
	return got
}

func (a answer) replayed() bool { return a.header.Get(semelhttp.HeaderReplayed) == "true" }

func (a answer) problem(t *testing.T) semelhttp.Problem {
	t.Helper()
	if got, want := a.header.Get("Content-Type"), "application/problem+json"; got != want {
		t.Errorf("Content-Type = %q of %d %s, want %q", got, a.status, a.body, want)
	}
	var p semelhttp.Problem
	check.NoError(t, json.Unmarshal([]byte(a.body), &p), "body %q", a.body)
	return p
}

// wantProblem checks that a is a problem of this package.
func wantProblem(t *testing.T, a answer, status int, code string) {
	t.Helper()
	p := a.problem(t)
	if a.status != status || p.Status != status || p.Code != code {
		t.Errorf("got %d %s, want %d %s", a.status, a.body, status, code)
	}
	if p.Type != "/problems/"+code || p.Title == "" || p.Detail == "" {
		t.Errorf("problem %+v, want a type, a title and a detail", p)
	}
	if a.replayed() {
		t.Error("the layer's own error is marked as a replay")
	}
}

// wantFirst checks that a is a first response with that status and body.
func wantFirst(t *testing.T, a answer, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got %d %.200q, want %d %.200q", a.status, a.body, status, body)
	}
	if a.header[semelhttp.HeaderReplayed] != nil {
		t.Error("the first answer is marked as a replay")
	}
}

// wantReplay checks that a is a replay of first.
func wantReplay(t *testing.T, a, first answer) {
	t.Helper()
	if a.status != first.status || a.body != first.body {
		t.Errorf("replayed %d %.200q, want %d %.200q", a.status, a.body, first.status, first.body)
	}
	if !a.replayed() {
		t.Errorf("the replay of %d is not marked", first.status)
	}
	for _, name := range []string{"Content-Type", "Location", "Etag", "Link", "Content-Length"} {
		got, want := strings.Join(a.header[name], "|"), strings.Join(first.header[name], "|")
		check.Equal(t, got, want, "replayed %s", name)
	}
}

// sendAlone sends a request that the HTTP client does not retry by itself, and
// reports whether it was answered.
func sendAlone(t *testing.T, a testRequest, base string) (answer, bool) {
	t.Helper()
	req := a.request(t, base)
	req.GetBody = nil
	resp, err := testClient.Do(req)
	if err != nil {
		return answer{}, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err == nil
}
