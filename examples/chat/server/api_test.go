package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
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
	w.group = w.newGroup(t, w.ann, "crew")
	return w
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
	keyed := func(q request, key string) request { q.key = key; return q }
	sentBy := func(u user, q request) request { q.as = u; return q }
	typed := func(q request, contentType string) request {
		q.header = map[string]string{"Content-Type": contentType}
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
		"no key for a user":     {keyed(post("/v1/users", `{"name":"a","password":"correct horse"}`), ""), 400, "key_missing", "Idempotency-Key"},
		"session name empty":    {post("/v1/sessions", `{"name":"","password":"x"}`), 400, "invalid", "name"},
		"session unknown name":  {post("/v1/sessions", `{"name":"zoe","password":"correct horse"}`), 401, "wrong_credentials", ""},
		"session strange name":  {post("/v1/sessions", `{"name":"a\u202eb","password":"correct horse"}`), 401, "wrong_credentials", ""},
		"session of the server": {post("/v1/sessions", `{"name":"Semel","password":"correct horse"}`), 401, "wrong_credentials", ""},
		"session password":      {post("/v1/sessions", `{"name":"ann","password":"wrong horse"}`), 401, "wrong_credentials", ""},
		"prefix empty":          {request{method: "GET", path: "/v1/users?name=", as: w.ann}, 400, "invalid", "name"},
		"form":                  {typed(post("/v1/users", `{"name":"a","password":"correct horse"}`), "text/plain"), 415, "unsupported_media_type", "Content-Type"},
		"session form":          {typed(post("/v1/sessions", `{"name":"ann","password":"correct horse"}`), "application/x-www-form-urlencoded"), 415, "unsupported_media_type", "Content-Type"},
		"text missing":          {post(group+"/messages", `{}`), 400, "invalid", "text"},
		"text too long":         {post(group+"/messages", `{"text":"`+long(4001)+`"}`), 400, "invalid", "text"},
		"members field missing": {post(group+"/members", `{}`), 400, "invalid", "member_ids"},
		"no key":                {keyed(post("/v1/groups", `{"name":"a"}`), ""), 400, "key_missing", "Idempotency-Key"},
		"no key for a message":  {keyed(post(group+"/messages", `{"text":"a"}`), ""), 400, "key_missing", "Idempotency-Key"},
		"key too long":          {keyed(post("/v1/groups", `{"name":"a"}`), strings.Repeat("k", 256)), 400, "key_malformed", "Idempotency-Key"},
		"key unfinished":        {keyed(post("/v1/groups", `{"name":"a"}`), `"unfinished`), 400, "key_malformed", "Idempotency-Key"},
		"no token":              {sentBy(user{}, post("/v1/groups", `{"name":"a"}`)), 401, "unauthenticated", "Authorization"},
		"unknown token":         {sentBy(user{Token: "unknown"}, post("/v1/groups", `{"name":"a"}`)), 401, "unauthenticated", "Authorization"},
		"other scheme":          {request{method: "POST", path: "/v1/groups", key: key, header: map[string]string{"Authorization": "Basic " + w.ann.Token}}, 401, "unauthenticated", "Authorization"},
		"message of a stranger": {sentBy(w.bob, post(group+"/messages", `{"text":"a"}`)), 403, "not_a_member", "id"},
		"stranger's group":      {request{method: "GET", path: group, as: w.bob}, 403, "not_a_member", "id"},
		"stranger's messages":   {request{method: "GET", path: group + "/messages", as: w.bob}, 403, "not_a_member", "id"},
		"stranger adds":         {sentBy(w.bob, post(group+"/members", `{"member_ids":[2]}`)), 403, "not_a_member", "id"},
		"no such group":         {request{method: "GET", path: "/v1/groups/grp_none", as: w.ann}, 404, "not_found", "id"},
		"message to no group":   {post("/v1/groups/grp_none/messages", `{"text":"a"}`), 404, "not_found", "id"},
		"no such user":          {request{method: "GET", path: "/v1/users/99", as: w.ann}, 404, "not_found", "id"},
		"user not a number":     {request{method: "GET", path: "/v1/users/x", as: w.ann}, 404, "not_found", "id"},
		"two ways to page":      {request{method: "GET", path: group + "/messages?after=1&before=3", as: w.ann}, 400, "invalid", "after"},
		"seq not a number":      {request{method: "PATCH", path: group + "/messages/x", as: w.ann, body: `{"text":"a"}`}, 404, "not_found", "seq"},
		"no such message":       {request{method: "DELETE", path: group + "/messages/99", as: w.ann}, 404, "not_found", "id"},
		"seq negative":          {request{method: "PUT", path: group + "/read", as: w.ann, body: `{"seq":-1}`}, 400, "invalid", "seq"},
		"seq null":              {request{method: "PUT", path: group + "/read", as: w.ann, body: `{"seq":null}`}, 400, "invalid", "seq"},
		"name of no member":     {post("/v1/groups", `{"name":"a","member_names":[null]}`), 400, "invalid", "member_names"},
		"after negative":        {request{method: "GET", path: group + "/messages?after=-1", as: w.ann}, 400, "invalid", "after"},
		"limit zero":            {request{method: "GET", path: group + "/messages?limit=0", as: w.ann}, 400, "invalid", "limit"},
		"limit a word":          {request{method: "GET", path: group + "/messages?limit=all", as: w.ann}, 400, "invalid", "limit"},
		"no such address":       {request{method: "GET", path: "/v1/nothing", as: w.ann}, 404, "not_found", ""},
		"no such method":        {request{method: "DELETE", path: group, as: w.ann}, 405, "method_not_allowed", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := w.send(t, test.request).want(t, test.status, test.code)
			said := a.Header.Get(headerDescribed) == "no"
			if test.status == http.StatusBadRequest && said == slices.Contains(unsayable, name) {
				t.Errorf("the description refuses it: %v", said)
			}
			check.Equal(t, a.Header.Get("Content-Type"), "application/problem+json", "Content-Type")
			p := a.value(t)
			if field, _ := p["field"].(string); test.field != "" && field != test.field {
				t.Errorf("the problem names %q, want %q: %s", field, test.field, a.Body)
			}
			w.wantDocumented(t, p)
		})
	}
	last := post("/v1/groups", `{"name":"at last"}`)
	a := w.send(t, last).want(t, http.StatusCreated, "")
	check.Equal(t, a.Replayed, false, "a refused request has used the key up")
	last.key = `"` + key + `"` // the quoted form of the same key
	w.send(t, last).wantReplayOf(t, a)
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

// TestTextThatCannotBeStored: PostgreSQL has no character U+0000, and no text that is not UTF-8. Such an ID
// or ticket is unknown; an answer that asks for a retry would never change.
func TestTextThatCannotBeStored(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, newPostgres(t, inline).args(time.Minute)...)
	ann := s.signIn(t, "ann")
	for _, id := range []string{"%00", "grp_%00", "%ff", "%ed%a0%80"} {
		for _, path := range []string{"/v1/groups/" + id, "/v1/groups/" + id + "/messages", "/v1/users/" + id} {
			s.send(t, request{method: "GET", path: path, as: ann}).want(t, http.StatusNotFound, "not_found")
		}
		for _, ticket := range []string{id, id + "." + id, "1." + id, id + ".1"} {
			s.send(t, request{method: "GET", path: "/v1/events?ticket=" + ticket}).want(t, http.StatusUnauthorized, "")
		}
		push := s.listen(t, ann, "?group="+id+url.QueryEscape(":")+"0").until(t, "subscribed")
		check.Equal(t, push["err"].(map[string]any)["code"].(string), "not_found", "the group %s", id)
	}
	s.send(t, request{method: "GET", path: "/v1/users?name=%00", as: ann}).want(t, http.StatusBadRequest, "invalid")
	s.send(t, request{method: "GET", path: "/v1/users?name=%ff", as: ann}).want(t, http.StatusBadRequest, "invalid")
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
