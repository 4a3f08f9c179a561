package server_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
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
	check.Require(t, json.Unmarshal([]byte(a.Body), &v), "the body %q is not a JSON object", a.Body)
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
	check.Require(t, err, "%s %s", q.method, q.path)
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

// settling returns settle as a function for a crowd.
func (c *client) settling(q request) func(context.Context) (answer, error) {
	return func(ctx context.Context) (answer, error) { return c.settle(ctx, q) }
}

// trying returns try, likewise.
func (c *client) trying(q request) func(context.Context) (answer, error) {
	return func(ctx context.Context) (answer, error) { return c.try(ctx, q) }
}

// settled is settle; the test fails if there is no answer.
func (c *client) settled(t *testing.T, q request) answer {
	t.Helper()
	a, err := c.settle(t.Context(), q)
	check.Require(t, err, "%s %s", q.method, q.path)
	return a
}

// crowd are requests that are sent at the same time.
type crowd struct {
	sending sync.WaitGroup
	mu      sync.Mutex
	answers []answer
}

// send starts n requests, each of which must have an answer.
func (c *crowd) send(t *testing.T, n int, ask func(context.Context) (answer, error)) {
	for range n {
		c.sending.Go(func() {
			a, err := ask(t.Context())
			check.NoError(t, err)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.answers = append(c.answers, a)
		})
	}
}

// wait returns the answers, in any order.
func (c *crowd) wait() []answer {
	c.sending.Wait()
	return c.answers
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
	check.Require(t, json.Unmarshal([]byte(a.Body), &opened))
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

// newGroup creates a group and returns its ID.
func (c *client) newGroup(t *testing.T, owner user, name string, members ...int64) string {
	t.Helper()
	a := c.settled(t, creation(owner, rand.Text(), name, members...)).want(t, http.StatusCreated, "")
	return a.value(t)["id"].(string)
}

// read returns what a path has for a user.
func read[T any](t *testing.T, c *client, as user, path string) (v T) {
	t.Helper()
	a := c.send(t, request{method: "GET", path: path, as: as}).want(t, http.StatusOK, "")
	check.Require(t, json.Unmarshal([]byte(a.Body), &v))
	return v
}

// groupsOf lists a user's groups.
func (c *client) groupsOf(t *testing.T, u user) []map[string]any {
	t.Helper()
	return read[struct{ Groups []map[string]any }](t, c, u, "/v1/groups").Groups
}

// ask sends a request without a key.
func (c *client) ask(t *testing.T, as user, method, path, body string) answer {
	t.Helper()
	return c.settled(t, request{method: method, path: path, as: as, body: body})
}

// say sends a message.
func (c *client) say(t *testing.T, as user, group, key, text string) answer {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"text": text})
	return c.settled(t, request{method: "POST", path: "/v1/groups/" + group + "/messages", as: as, key: key, body: string(body)})
}

// message holds the parts of a message that tests check.
type message struct {
	Seq      int64
	AuthorID int64 `json:"author_id"`
	Author   string
	Text     string
}

// messagesIn lists the messages of a group, in order.
func (c *client) messagesIn(t *testing.T, u user, group string) []message {
	t.Helper()
	return read[struct{ Messages []message }](t, c, u, "/v1/groups/"+group+"/messages?limit=200").Messages
}

// textsOf lists the texts of a member in a group, in order.
func (c *client) textsOf(t *testing.T, author user, group string) (texts []string) {
	t.Helper()
	for _, m := range c.messagesIn(t, author, group) {
		if m.AuthorID == author.ID {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// want fails the test unless a has the status and, for problems, the code.
func (a answer) want(t *testing.T, status int, code string) answer {
	t.Helper()
	if a.Status != status || a.code() != code {
		t.Fatalf("got %d %q, want %d %q; body: %s", a.Status, a.code(), status, code, a.Body)
	}
	return a
}

// wantReplayOf fails the test unless a is a replay of an earlier answer.
func (a answer) wantReplayOf(t *testing.T, first answer) {
	t.Helper()
	if a.Status != first.Status || a.Body != first.Body || !a.Replayed {
		t.Fatalf("got %d %q (replayed %v), want a replay of %d %q", a.Status, a.Body, a.Replayed, first.Status, first.Body)
	}
}

// scopeOf is the scope of a user's keys.
func scopeOf(u user) semel.Scope { return semel.ScopeOf(strconv.FormatInt(u.ID, 10)) }
