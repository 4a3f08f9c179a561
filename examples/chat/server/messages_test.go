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

// TestMessagesAreSentOnce repeats a message: its number stays, and the numbers have
// no gaps.
func TestMessagesAreSentOnce(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		group := s.send(t, creation(owner, "g", "crew")).value(t)["id"].(string)
		s.wantWelcomes(t, f.openDomain(t), owner, group, 1)
		path := "/v1/groups/" + group + "/messages"
		send := func(key, text string) answer {
			return s.send(t, request{method: "POST", path: path, as: owner, key: key, body: `{"text":"` + text + `"}`})
		}
		var seqs []float64
		for _, key := range []string{"a", "b", "a", "c", "b"} {
			seqs = append(seqs, send(key, "hello").want(t, http.StatusCreated, "").value(t)["seq"].(float64))
		}
		check.NoDiff(t, cmp.Diff([]float64{2, 3, 2, 4, 3}, seqs), "seqs")
		send("a", "other").want(t, http.StatusUnprocessableEntity, "key_reused")
		list := s.send(t, request{method: "GET", path: path + "?after=1&limit=1", as: owner}).value(t)["messages"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["seq"] != 2.0 {
			t.Errorf("after 1, limit 1: %v", list)
		}
	})
}

// TestMessagesChange edits, deletes and pages messages, and moves read markers.
func TestMessagesChange(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		ann, bob := s.signIn(t, "Ann"), s.signIn(t, "Bob")
		id := s.newGroup(t, ann, "crew", bob.ID)
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
			"?changed_after=4&limit=1": {5, 6}, "?changed_after=4": {5, 3, 4, 8}, "?changed_after=8": {8}, "?before=1": {8}, "?after=5": {8},
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

// TestReadMarkersArePushed to the members when they move, and not when they stay.
func TestReadMarkersArePushed(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	ann, bob := s.signIn(t, "ann"), s.signIn(t, "bob")
	group := s.settled(t, creation(ann, "k", "crew", bob.ID)).value(t)["id"].(string)
	s.say(t, ann, group, "m1", "one").want(t, http.StatusCreated, "")
	s.say(t, ann, group, "m2", "two").want(t, http.StatusCreated, "")
	stream := s.listen(t, ann, "?group="+group+":0")
	stream.until(t, "subscribed")
	for _, seq := range []int{1, 1, 0, 2} {
		s.ask(t, bob, "PUT", "/v1/groups/"+group+"/read", fmt.Sprintf(`{"seq":%d}`, seq)).want(t, http.StatusOK, "")
	}
	for _, want := range []float64{1, 2} {
		if push := stream.until(t, "read"); push["seq"] != want || push["user"] != float64(bob.ID) {
			t.Errorf("pushed %v, want the marker %v of user %d", push, want, bob.ID)
		}
	}
}
