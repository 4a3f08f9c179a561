package server_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
)

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
		if code := push["err"].(map[string]any)["code"]; code != "not_found" {
			t.Errorf("the group %s: %v, want not_found", id, push)
		}
	}
	s.send(t, request{method: "GET", path: "/v1/users?name=%00", as: ann}).want(t, http.StatusBadRequest, "invalid")
	s.send(t, request{method: "GET", path: "/v1/users?name=%ff", as: ann}).want(t, http.StatusBadRequest, "invalid")
}
