package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// memberIDs lists the members of a group.
func memberIDs(group map[string]any) (ids []int64) {
	for _, m := range group["members"].([]any) {
		ids = append(ids, int64(m.(map[string]any)["id"].(float64)))
	}
	return ids
}

// TestMembersComeAndGo adds members by name, renames a group, removes a member, and lets
// the owner leave.
func TestMembersComeAndGo(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		ann, bob, cy := s.signIn(t, "Ann"), s.signIn(t, "Bob"), s.signIn(t, "Cy")
		made := request{method: "POST", path: "/v1/groups", as: ann, key: "k", body: `{"name":"crew","member_names":[" BOB"]}`}
		g := s.settled(t, made).want(t, http.StatusCreated, "").value(t)
		check.NoDiff(t, cmp.Diff([]int64{ann.ID, bob.ID}, memberIDs(g)), "the members of the group")
		group := "/v1/groups/" + g["id"].(string)
		made.key, made.body = "k2", `{"name":"crew","member_names":["Bob","Zoë"]}`
		check.Equal(t, s.settled(t, made).want(t, http.StatusUnprocessableEntity, "unknown_member").value(t)["field"].(string), "member_names", "the field of the refusal")
		s.ask(t, ann, "POST", group+"/members", `{"member_names":["Zoë"]}`).want(t, http.StatusUnprocessableEntity, "unknown_member")
		s.ask(t, ann, "POST", group+"/members", fmt.Sprintf(`{"member_names":["cy"],"member_ids":[%d]}`, bob.ID)).want(t, http.StatusOK, "")
		s.ask(t, ann, "POST", group+"/members", fmt.Sprintf(`{"member_ids":[%d,99]}`, cy.ID)).want(t, http.StatusUnprocessableEntity, "unknown_member")
		s.ask(t, bob, "POST", group+"/members", `{"member_names":["cy"]}`).want(t, http.StatusForbidden, "not_the_owner")
		s.ask(t, bob, "PATCH", group, `{"name":"mine"}`).want(t, http.StatusForbidden, "not_the_owner")
		g = s.ask(t, ann, "PATCH", group, `{"name":"team"}`).want(t, http.StatusOK, "").value(t)
		if g["name"] != "team" || !slices.Equal(memberIDs(g), []int64{ann.ID, bob.ID, cy.ID}) {
			t.Errorf("the renamed group is %v", g)
		}

		sent := s.say(t, cy, g["id"].(string), "k", "hello").want(t, http.StatusCreated, "")
		s.ask(t, bob, "DELETE", group+fmt.Sprint("/members/", cy.ID), "").want(t, http.StatusForbidden, "not_the_owner")
		for range 2 {
			s.ask(t, ann, "DELETE", group+fmt.Sprint("/members/", cy.ID), "").want(t, http.StatusNoContent, "")
		}
		// A member that was removed reads and writes nothing any more, not even the own answer.
		s.say(t, cy, g["id"].(string), "k", "hello").want(t, http.StatusForbidden, "not_a_member")
		s.say(t, cy, g["id"].(string), "k2", "hello").want(t, http.StatusForbidden, "not_a_member")
		for _, q := range [][3]string{
			{"GET", group, ""},
			{"GET", group + "/messages", ""},
			{"GET", group + "/boosts", ""},
			{"PATCH", group + fmt.Sprint("/messages/", sent.value(t)["seq"]), `{"text":"late"}`},
			{"DELETE", group + fmt.Sprint("/messages/", sent.value(t)["seq"]), ""},
			{"PUT", group + "/read", `{"seq":1}`},
			{"PATCH", group, `{"name":"late"}`},
			{"POST", group + "/members", `{"member_names":["cy"]}`},
		} {
			s.ask(t, cy, q[0], q[1], q[2]).want(t, http.StatusForbidden, "not_a_member")
		}
		check.Equal(t, len(s.groupsOf(t, cy)), 0, "groups of the removed member")

		for range 2 {
			s.ask(t, ann, "DELETE", group+"/members/me", "").want(t, http.StatusNoContent, "")
		}
		g = s.ask(t, bob, "PATCH", group, `{"name":"mine"}`).want(t, http.StatusOK, "").value(t)
		if g["owner_id"] != float64(bob.ID) || !slices.Equal(memberIDs(g), []int64{bob.ID}) {
			t.Errorf("the group whose owner has left is %v", g)
		}
		s.ask(t, bob, "DELETE", "/v1/groups/grp_none/members/me", "").want(t, http.StatusNotFound, "not_found")
		s.ask(t, bob, "DELETE", group+"/members/x", "").want(t, http.StatusNotFound, "not_found")
		if a := s.settled(t, request{method: "POST", path: "/v1/groups", as: ann, key: "k", body: `{"name":"crew","member_names":[" BOB"]}`}); !a.Replayed {
			t.Errorf("the creation is answered %d %s later", a.Status, a.Body)
		}
	})
}

func TestGroupIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.send(t, creation(w.ann, "k", "readers", w.bob.ID)).want(t, http.StatusCreated, "")
	g := a.value(t)
	check.Equal(t, a.Header.Get("Location"), "/v1/groups/"+g["id"].(string), "Location")
	check.NoError(t, check.Err(time.Parse(time.RFC3339, g["created_at"].(string))), "created_at")
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
	check.NoDiff(t, cmp.Diff(want, g), "the group")
	for _, u := range []user{w.ann, w.bob} { // both are members
		got := w.send(t, request{method: "GET", path: a.Header.Get("Location"), as: u}).want(t, http.StatusOK, "").value(t)
		for _, field := range []string{"id", "name", "owner_id", "conversation_id", "created_at", "members"} {
			check.NoDiff(t, cmp.Diff(g[field], got[field]), "%s read by %s", field, u.Name)
		}
	}
}
