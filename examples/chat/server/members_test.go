package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
)

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

// TestMembersComeAndGo adds members by name, renames a group, removes a member, and lets
// the owner leave.
func TestMembersComeAndGo(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		ann, bob, cy := s.signIn(t, "Ann"), s.signIn(t, "Bob"), s.signIn(t, "Cy")
		made := request{method: "POST", path: "/v1/groups", as: ann, key: "k", body: `{"name":"crew","member_names":[" BOB"]}`}
		g := s.settled(t, made).want(t, http.StatusCreated, "").value(t)
		if !slices.Equal(memberIDs(g), []int64{ann.ID, bob.ID}) {
			t.Errorf("the group has the members %v", memberIDs(g))
		}
		group := "/v1/groups/" + g["id"].(string)
		made.key, made.body = "k2", `{"name":"crew","member_names":["Bob","Zoë"]}`
		if p := s.settled(t, made).want(t, http.StatusUnprocessableEntity, "unknown_member").value(t); p["field"] != "member_names" {
			t.Errorf("the refusal names %v", p["field"])
		}
		s.ask(t, ann, "POST", group+"/members", `{"member_names":["Zoë"]}`).want(t, http.StatusUnprocessableEntity, "unknown_member")
		s.ask(t, ann, "POST", group+"/members", fmt.Sprintf(`{"member_names":["cy"],"member_ids":[%d]}`, bob.ID)).want(t, http.StatusOK, "")
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
		if n := len(s.groupsOf(t, cy)); n != 0 {
			t.Errorf("the removed member has %d groups", n)
		}

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

// TestMessagesChange edits, deletes and pages messages, and moves read markers.
func TestMessagesChange(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		ann, bob := s.signIn(t, "Ann"), s.signIn(t, "Bob")
		id := s.settled(t, creation(ann, "k", "crew", bob.ID)).want(t, http.StatusCreated, "").value(t)["id"].(string)
		group := "/v1/groups/" + id
		s.wantWelcomes(t, f.openDomain(t), ann, id, ann.ID, bob.ID) // changes 2 and 3
		for i, u := range []user{ann, bob, ann} {                   // changes 4 to 6
			m := s.say(t, u, id, fmt.Sprint("k", i), "hello").want(t, http.StatusCreated, "").value(t)
			if m["seq"] != float64(i+3) || m["change"] != float64(i+4) || m["client_id"] != fmt.Sprint("k", i) {
				t.Errorf("message %d is %v", i, m)
			}
		}
		one, two := group+"/messages/3", group+"/messages/4" // Ann's, Bob's
		s.ask(t, bob, "PATCH", one, `{"text":"no"}`).want(t, http.StatusForbidden, "not_the_author")
		s.ask(t, bob, "DELETE", one, "").want(t, http.StatusForbidden, "not_the_author")
		for range 2 { // change 7
			m := s.ask(t, ann, "PATCH", one, `{"text":"hello, all"}`).want(t, http.StatusOK, "").value(t)
			if m["text"] != "hello, all" || m["change"] != 7.0 || m["edited_at"] == nil || m["client_id"] != "k0" {
				t.Errorf("edited: %v", m)
			}
		}
		for range 2 { // change 8
			m := s.ask(t, ann, "DELETE", two, "").want(t, http.StatusOK, "").value(t)
			if m["text"] != "" || m["change"] != 8.0 || m["deleted"] != true {
				t.Errorf("deleted: %v", m)
			}
		}
		s.ask(t, bob, "PATCH", two, `{"text":"back"}`).want(t, http.StatusNotFound, "not_found")
		for query, want := range map[string][]float64{
			"?limit=2": {4, 5, 8}, "?before=4&limit=2": {2, 3, 8}, "?after=3": {4, 5, 8}, "?changed_after=6": {3, 4, 8},
			"?changed_after=4&limit=1": {5, 6}, "?before=1": {8},
		} {
			a := s.ask(t, bob, "GET", group+"/messages"+query, "").want(t, http.StatusOK, "").value(t)
			var got []float64
			for _, m := range a["messages"].([]any) {
				got = append(got, m.(map[string]any)["seq"].(float64))
			}
			if got = append(got, a["change"].(float64)); !slices.Equal(got, want) {
				t.Errorf("%s: messages and change %v, want %v", query, got, want)
			}
		}
		for _, step := range []struct{ seq, read, unread int }{{4, 4, 1}, {2, 4, 1}, {99, 5, 0}} {
			a := s.ask(t, bob, "PUT", group+"/read", fmt.Sprintf(`{"seq":%d}`, step.seq)).want(t, http.StatusOK, "").value(t)
			own := s.groupsOf(t, bob)[0]
			if a["seq"] != float64(step.read) || own["read_seq"] != a["seq"] || own["unread"] != float64(step.unread) {
				t.Errorf("read to %d: marker %v, the list has %v and %v unread", step.seq, a["seq"], own["read_seq"], own["unread"])
			}
		}
		if last := s.groupsOf(t, bob)[0]["last_message"].(map[string]any); last["seq"] != 5.0 || last["author"] != "Ann" {
			t.Errorf("the last message is %v", last)
		}
	})
}
