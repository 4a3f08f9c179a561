package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
)

// patience bounds every wait of a test. It is much longer than any wait takes, and
// no test depends on its length.
const patience = 4 * time.Minute

// client sends requests to one server.
type client struct {
	base string
	http *http.Client
	// hurry divides the delay before a retry.
	hurry time.Duration
}

func newClient(t *testing.T, base string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{base: base, http: &http.Client{Transport: transport}, hurry: 10}
}

// user is a registered user.
type user struct {
	ID    int64
	Name  string
	Token string
}

// answer holds the parts of a response that tests check.
type answer struct {
	Status   int
	Header   http.Header
	Body     string
	Replayed bool
}

// value decodes the body.
func (a answer) value(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		t.Fatalf("the body %q is not a JSON object: %v", a.Body, err)
	}
	return v
}

// code returns the code of a problem, and "" for other responses.
func (a answer) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal([]byte(a.Body), &p)
	return p.Code
}

// open reports whether a retry may have another answer.
func (a answer) open() bool {
	return a.Status == http.StatusServiceUnavailable || a.code() == "in_progress"
}

// request is a request to send.
type request struct {
	method, path string
	as           user
	key          string
	body         string
	header       map[string]string
}

// try sends a request once.
func (c *client) try(ctx context.Context, q request) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, strings.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	if q.as.Token != "" {
		r.Header.Set("Authorization", "Bearer "+q.as.Token)
	}
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	if q.method != http.MethodGet && q.method != http.MethodDelete {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{
		Status: response.StatusCode, Header: response.Header, Body: string(body),
		Replayed: response.Header.Get("Idempotent-Replayed") == "true",
	}, nil
}

// send sends a request once. The test fails if there is no response.
func (c *client) send(t *testing.T, q request) answer {
	t.Helper()
	a, err := c.try(t.Context(), q)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return a
}

// settle sends a request until its answer is final.
func (c *client) settle(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		a, err := c.try(ctx, q)
		if err != nil || !a.open() {
			return a, err
		}
		after, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if err != nil || after <= 0 {
			return a, fmt.Errorf("%d %s without a Retry-After", a.Status, a.code())
		}
		if err := pause(ctx, time.Duration(after)*time.Second/c.hurry); err != nil {
			return a, fmt.Errorf("still %d %s: %w", a.Status, a.code(), err)
		}
	}
}

// settled is settle; the test fails if there is no answer.
func (c *client) settled(t *testing.T, q request) answer {
	t.Helper()
	a, err := c.settle(t.Context(), q)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return a
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// password is the password of all users of the tests.
const password = "correct horse"

// signUp is the request that adds a user.
func signUp(key, name string) request {
	body, _ := json.Marshal(map[string]string{"name": name, "password": password})
	return request{method: "POST", path: "/v1/users", key: key, body: string(body)}
}

// logIn opens a session of a user.
func (c *client) logIn(t *testing.T, name, device string) user {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"name": name, "password": password, "device": device})
	a := c.settled(t, request{method: "POST", path: "/v1/sessions", body: string(body)}).want(t, http.StatusCreated, "")
	var opened struct {
		Token string
		User  user
	}
	if err := json.Unmarshal([]byte(a.Body), &opened); err != nil {
		t.Fatal(err)
	}
	opened.User.Token = opened.Token
	return opened.User
}

// signIn adds a user and opens a session.
func (c *client) signIn(t *testing.T, name string) user {
	t.Helper()
	c.settled(t, signUp("sign up "+name, name)).want(t, http.StatusCreated, "")
	return c.logIn(t, name, "test")
}

// creation is the request that creates a group.
func creation(as user, key, name string, members ...int64) request {
	body, _ := json.Marshal(map[string]any{"name": name, "member_ids": append([]int64{}, members...)})
	return request{method: "POST", path: "/v1/groups", as: as, key: key, body: string(body)}
}

// groupsOf lists a user's groups.
func (c *client) groupsOf(t *testing.T, u user) []map[string]any {
	t.Helper()
	a := c.send(t, request{method: "GET", path: "/v1/groups", as: u})
	if a.Status != http.StatusOK {
		t.Fatalf("GET /v1/groups = %d %s", a.Status, a.Body)
	}
	var v struct{ Groups []map[string]any }
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		t.Fatal(err)
	}
	return v.Groups
}

// want fails the test unless a has the status and, for problems, the code.
func (a answer) want(t *testing.T, status int, code string) answer {
	t.Helper()
	if a.Status != status || a.code() != code {
		t.Fatalf("got %d %q, want %d %q; body: %s", a.Status, a.code(), status, code, a.Body)
	}
	return a
}

// scopeOf is the scope of a user's keys.
func scopeOf(u user) semel.Scope { return semel.ScopeOf(strconv.FormatInt(u.ID, 10)) }
