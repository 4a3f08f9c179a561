package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/server"
)

// fixture is a server with two users and a group of the first user.
type fixture struct {
	*localServer

	fakePayments *fakePayments
	ann, bob     user
	group        string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{fakePayments: newFakePayments(t)}
	w.localServer = serveLocal(t, server.Hooks{}, append(newFiles(t, inline).args(time.Minute), "-payments", w.fakePayments.url)...)
	w.ann, w.bob = w.signIn(t, "ann"), w.signIn(t, "bob")
	w.group = w.send(t, creation(w.ann, "fixture", "crew")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	return w
}

func TestGroupIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.send(t, creation(w.ann, "k", "readers", w.bob.ID)).want(t, http.StatusCreated, "")
	g := a.value(t)
	if got, want := a.Header.Get("Location"), "/v1/groups/"+g["id"].(string); got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	if _, err := time.Parse(time.RFC3339, g["created_at"].(string)); err != nil {
		t.Errorf("created_at: %v", err)
	}
	if g["conversation_id"] == "" || g["conversation_id"] == g["id"] {
		t.Errorf("conversation_id %v", g["conversation_id"])
	}
	want := map[string]any{
		"id": g["id"], "conversation_id": g["conversation_id"], "created_at": g["created_at"],
		"name": "readers", "owner_id": 1.0, "members": []any{
			map[string]any{"id": 1.0, "name": "ann", "read_seq": 0.0, "owner": true},
			map[string]any{"id": 2.0, "name": "bob", "read_seq": 0.0, "owner": false},
		},
		"last_seq": 0.0, "last_change": 1.0, "last_message": nil, "read_seq": 0.0, "unread": 0.0,
	}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("the group (-want +got):\n%s", diff)
	}
	for _, u := range []user{w.ann, w.bob} { // both are members
		got := w.send(t, request{method: "GET", path: a.Header.Get("Location"), as: u}).want(t, http.StatusOK, "").value(t)
		for _, field := range []string{"id", "name", "owner_id", "conversation_id", "created_at", "members"} {
			if diff := cmp.Diff(g[field], got[field]); diff != "" {
				t.Errorf("%s read by %s (-created +read):\n%s", field, u.Name, diff)
			}
		}
	}
}

func TestOwnerAddsMembers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	q := request{method: "POST", path: "/v1/groups/" + w.group + "/members", as: w.ann, body: `{"member_ids":[2]}`}
	for range 2 { // adding a member twice changes nothing
		g := w.send(t, q).want(t, http.StatusOK, "").value(t)
		if members := memberIDs(g); !slices.Equal(members, []int64{1, 2}) {
			t.Errorf("members %v, want 1 and 2", members)
		}
	}
	q.as = w.bob
	w.send(t, q).want(t, http.StatusForbidden, "not_the_owner")
	q.as, q.body = w.ann, `{"member_ids":[2,9]}`
	w.send(t, q).want(t, http.StatusUnprocessableEntity, "unknown_member")
	if groups := w.groupsOf(t, w.bob); len(groups) != 1 {
		t.Errorf("bob has %d groups, want 1", len(groups))
	}
}

// memberIDs lists the members of a group.
func memberIDs(group map[string]any) (ids []int64) {
	for _, m := range group["members"].([]any) {
		ids = append(ids, int64(m.(map[string]any)["id"].(float64)))
	}
	return ids
}

func TestUsersAreNumberedInSequence(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	if w.ann.ID != 1 || w.bob.ID != 2 || w.ann.Token == w.bob.Token || len(w.ann.Token) < 32 {
		t.Errorf("ann %+v, bob %+v", w.ann, w.bob)
	}
	got := w.send(t, request{method: "GET", path: "/v1/users/2", as: w.ann}).want(t, http.StatusOK, "")
	if strings.TrimSpace(got.Body) != `{"id":2,"name":"bob"}` {
		t.Errorf("user 2: %s", got.Body)
	}
}

// TestRefusals sends invalid requests. Each response is a problem that names the
// field, and none of the requests claims its key.
func TestRefusals(t *testing.T) {
	w := newFixture(t)
	const key = "refused"
	post := func(path, body string) request {
		return request{method: "POST", path: path, as: w.ann, key: key, body: body}
	}
	group := "/v1/groups/" + w.group
	with := func(q request, change func(*request)) request {
		change(&q)
		return q
	}
	long := func(n int) string { return strings.Repeat("é", n) }
	huge := `{"name":"` + strings.Repeat("x", 64<<10) + `"}`
	// A JSON schema cannot express these.
	unsayable := []string{"field twice", "member too large", "body and more", "body not UTF-8", "key too long", "key unfinished", "two ways to page", "user name invisible"}
	tests := map[string]struct {
		request
		status      int
		code, field string
	}{
		"unknown field":         {post("/v1/groups", `{"name":"a","colour":"red"}`), 400, "invalid", "colour"},
		"other letter case":     {post("/v1/groups", `{"Name":"a"}`), 400, "invalid", "Name"},
		"field twice":           {post("/v1/groups", `{"name":"a","name":"b"}`), 400, "invalid", "name"},
		"name missing":          {post("/v1/groups", `{"member_ids":[]}`), 400, "invalid", "name"},
		"name a number":         {post("/v1/groups", `{"name":7}`), 400, "invalid", "name"},
		"name null":             {post("/v1/groups", `{"name":null}`), 400, "invalid", "name"},
		"name blank":            {post("/v1/groups", `{"name":"  "}`), 400, "invalid", "name"},
		"name with NUL":         {post("/v1/groups", `{"name":"a\u0000"}`), 400, "invalid", "name"},
		"name too long":         {post("/v1/groups", `{"name":"`+long(101)+`"}`), 400, "invalid", "name"},
		"members a text":        {post("/v1/groups", `{"name":"a","member_ids":"2"}`), 400, "invalid", "member_ids"},
		"members null":          {post("/v1/groups", `{"name":"a","member_ids":null}`), 400, "invalid", "member_ids"},
		"member a text":         {post("/v1/groups", `{"name":"a","member_ids":["2"]}`), 400, "invalid", "member_ids"},
		"member null":           {post("/v1/groups", `{"name":"a","member_ids":[null]}`), 400, "invalid", "member_ids"},
		"member a fraction":     {post("/v1/groups", `{"name":"a","member_ids":[1.5]}`), 400, "invalid", "member_ids"},
		"member zero":           {post("/v1/groups", `{"name":"a","member_ids":[0]}`), 400, "invalid", "member_ids"},
		"member too large":      {post("/v1/groups", `{"name":"a","member_ids":[9223372036854775808]}`), 400, "invalid", "member_ids"},
		"too many members":      {post("/v1/groups", `{"name":"a","member_ids":[1`+strings.Repeat(",1", 100)+`]}`), 400, "invalid", "member_ids"},
		"body empty":            {post("/v1/groups", ``), 400, "invalid", "body"},
		"body a list":           {post("/v1/groups", `[]`), 400, "invalid", "body"},
		"body cut short":        {post("/v1/groups", `{"name":"a"`), 400, "invalid", "body"},
		"body and more":         {post("/v1/groups", `{"name":"a"} {}`), 400, "invalid", "body"},
		"body not UTF-8":        {post("/v1/groups", "{\"name\":\"\xff\"}"), 400, "invalid", "body"},
		"body too large":        {post("/v1/groups", huge), 413, "body_too_large", "body"},
		"user body too large":   {post("/v1/users", huge), 413, "body_too_large", "body"},
		"user name missing":     {post("/v1/users", `{"password":"correct horse"}`), 400, "invalid", "name"},
		"user unknown field":    {post("/v1/users", `{"name":"a","password":"correct horse","id":1}`), 400, "invalid", "id"},
		"user name invisible":   {post("/v1/users", `{"name":"a\u202eb","password":"correct horse"}`), 400, "invalid", "name"},
		"user name reserved":    {post("/v1/users", `{"name":"ＳＥＭＥＬ","password":"correct horse"}`), 409, "name_taken", "name"},
		"password short":        {post("/v1/users", `{"name":"a","password":"1234567"}`), 400, "invalid", "password"},
		"password missing":      {post("/v1/users", `{"name":"a"}`), 400, "invalid", "password"},
		"no key for a user":     {with(post("/v1/users", `{"name":"a","password":"correct horse"}`), func(q *request) { q.key = "" }), 400, "key_missing", "Idempotency-Key"},
		"session name empty":    {post("/v1/sessions", `{"name":"","password":"x"}`), 400, "invalid", "name"},
		"session unknown name":  {post("/v1/sessions", `{"name":"zoe","password":"correct horse"}`), 401, "wrong_credentials", ""},
		"session strange name":  {post("/v1/sessions", `{"name":"a\u202eb","password":"correct horse"}`), 401, "wrong_credentials", ""},
		"session of the server": {post("/v1/sessions", `{"name":"Semel","password":"correct horse"}`), 401, "wrong_credentials", ""},
		"session password":      {post("/v1/sessions", `{"name":"ann","password":"wrong horse"}`), 401, "wrong_credentials", ""},
		"prefix empty":          {request{method: "GET", path: "/v1/users?name=", as: w.ann}, 400, "invalid", "name"},
		"form": {
			with(post("/v1/users", `{"name":"a","password":"correct horse"}`), func(q *request) {
				q.header = map[string]string{"Content-Type": "text/plain"}
			}), 415, "unsupported_media_type", "Content-Type",
		},
		"session form": {
			with(post("/v1/sessions", `{"name":"ann","password":"correct horse"}`), func(q *request) {
				q.header = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
			}), 415, "unsupported_media_type", "Content-Type",
		},
		"text missing":          {post(group+"/messages", `{}`), 400, "invalid", "text"},
		"text too long":         {post(group+"/messages", `{"text":"`+long(4001)+`"}`), 400, "invalid", "text"},
		"members field missing": {post(group+"/members", `{}`), 400, "invalid", "member_ids"},
		"no key":                {with(post("/v1/groups", `{"name":"a"}`), func(q *request) { q.key = "" }), 400, "key_missing", "Idempotency-Key"},
		"no key for a message":  {with(post(group+"/messages", `{"text":"a"}`), func(q *request) { q.key = "" }), 400, "key_missing", "Idempotency-Key"},
		"key too long": {
			with(post("/v1/groups", `{"name":"a"}`), func(q *request) { q.key = strings.Repeat("k", 256) }),
			400, "key_malformed", "Idempotency-Key",
		},
		"key unfinished": {
			with(post("/v1/groups", `{"name":"a"}`), func(q *request) { q.key = `"unfinished` }), 400, "key_malformed", "Idempotency-Key",
		},
		"no token": {with(post("/v1/groups", `{"name":"a"}`), func(q *request) { q.as = user{} }), 401, "unauthenticated", "Authorization"},
		"unknown token": {
			with(post("/v1/groups", `{"name":"a"}`), func(q *request) { q.as.Token = "nobody's" }), 401, "unauthenticated", "Authorization",
		},
		"other scheme": {
			with(post("/v1/groups", `{"name":"a"}`), func(q *request) {
				q.as, q.header = user{}, map[string]string{"Authorization": "Basic " + w.ann.Token}
			}), 401, "unauthenticated", "Authorization",
		},
		"message to a stranger's group": {
			with(post(group+"/messages", `{"text":"a"}`), func(q *request) { q.as = w.bob }), 403, "not_a_member", "id",
		},
		"stranger's group":    {request{method: "GET", path: group, as: w.bob}, 403, "not_a_member", "id"},
		"stranger's messages": {request{method: "GET", path: group + "/messages", as: w.bob}, 403, "not_a_member", "id"},
		"stranger adds":       {with(post(group+"/members", `{"member_ids":[2]}`), func(q *request) { q.as = w.bob }), 403, "not_a_member", "id"},
		"no such group":       {request{method: "GET", path: "/v1/groups/grp_none", as: w.ann}, 404, "not_found", "id"},
		"message to no group": {post("/v1/groups/grp_none/messages", `{"text":"a"}`), 404, "not_found", "id"},
		"no such user":        {request{method: "GET", path: "/v1/users/99", as: w.ann}, 404, "not_found", "id"},
		"user not a number":   {request{method: "GET", path: "/v1/users/x", as: w.ann}, 404, "not_found", "id"},
		"two ways to page":    {request{method: "GET", path: group + "/messages?after=1&before=3", as: w.ann}, 400, "invalid", "after"},
		"seq not a number":    {request{method: "PATCH", path: group + "/messages/x", as: w.ann, body: `{"text":"a"}`}, 404, "not_found", "seq"},
		"no such message":     {request{method: "DELETE", path: group + "/messages/99", as: w.ann}, 404, "not_found", "id"},
		"seq negative":        {request{method: "PUT", path: group + "/read", as: w.ann, body: `{"seq":-1}`}, 400, "invalid", "seq"},
		"seq null":            {request{method: "PUT", path: group + "/read", as: w.ann, body: `{"seq":null}`}, 400, "invalid", "seq"},
		"name of no member":   {post("/v1/groups", `{"name":"a","member_names":[null]}`), 400, "invalid", "member_names"},
		"after negative":      {request{method: "GET", path: group + "/messages?after=-1", as: w.ann}, 400, "invalid", "after"},
		"limit zero":          {request{method: "GET", path: group + "/messages?limit=0", as: w.ann}, 400, "invalid", "limit"},
		"limit a word":        {request{method: "GET", path: group + "/messages?limit=all", as: w.ann}, 400, "invalid", "limit"},
		"no such address":     {request{method: "GET", path: "/v1/nothing", as: w.ann}, 404, "not_found", ""},
		"no such method":      {request{method: "DELETE", path: group, as: w.ann}, 405, "method_not_allowed", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := w.send(t, test.request).want(t, test.status, test.code)
			said := a.Header.Get(headerDescribed) == "no"
			if test.status == http.StatusBadRequest && said == slices.Contains(unsayable, name) {
				t.Errorf("the description refuses it: %v", said)
			}
			if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type %q", got)
			}
			p := a.value(t)
			if field, _ := p["field"].(string); test.field != "" && field != test.field {
				t.Errorf("the problem names %q, want %q: %s", field, test.field, a.Body)
			}
			w.wantDocumented(t, p)
		})
	}
	last := post("/v1/groups", `{"name":"at last"}`)
	a := w.send(t, last).want(t, http.StatusCreated, "")
	if a.Replayed {
		t.Error("a refused request has used the key up")
	}
	last.key = `"` + key + `"` // the quoted form of the same key
	if b := w.send(t, last); b.Body != a.Body || !b.Replayed {
		t.Errorf("the raw and the quoted key: %q and %q, replayed %v", a.Body, b.Body, b.Replayed)
	}
}

// wantDocumented reads the page of a problem's type.
func (w *fixture) wantDocumented(t *testing.T, problem map[string]any) {
	t.Helper()
	address, _ := problem["type"].(string)
	page := w.send(t, request{method: "GET", path: address})
	if page.Status != http.StatusOK || !strings.Contains(page.Body, problem["code"].(string)) {
		t.Errorf("GET %s = %d %q, want its documentation", address, page.Status, page.Body)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		w.send(t, request{method: "GET", path: path}).want(t, http.StatusOK, "")
	}
}

func TestPageIsServed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for path, kind := range map[string]string{
		"/": "text/html", "/static/app.js": "text/javascript", "/static/style.css": "text/css", "/static/icon.svg": "image/svg+xml",
	} {
		a := w.send(t, request{method: "GET", path: path})
		if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
			t.Errorf("GET %s = %d %s", path, a.Status, a.Header.Get("Content-Type"))
		}
		if !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("GET %s has no content security policy", path)
		}
	}
}
