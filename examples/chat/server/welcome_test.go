package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// welcomes lists the members that were welcomed to a group, with duplicates. The
// table has no unique constraint.
func welcomes(t *testing.T, domain chatdb.Querier, group string) []int64 {
	t.Helper()
	return numbers(t, domain, `select user_id from welcomes where group_id = $1 order by user_id`, group)
}

// wantWelcomes waits for as many welcomes as there are members, and checks that each
// member was welcomed once, in the log and in the conversation.
func (c *client) wantWelcomes(t *testing.T, domain chatdb.Querier, u user, group string, members ...int64) {
	t.Helper()
	realtest.Poll(t, "the welcomes in "+group, func() bool { return len(welcomes(t, domain, group)) >= len(members) })
	check.NoDiff(t, cmp.Diff(members, welcomes(t, domain, group)), "%s: welcomed", group)
	said := 0
	for _, m := range c.messagesIn(t, u, group) {
		if m.AuthorID == chatdb.ServerID {
			said++
		}
	}
	check.Equal(t, said, len(members), "%s: messages of the server's", group)
}

// TestNewMembersAreWelcomed: each new member is welcomed once, for every way of
// joining and every number of retries. A user that did not become a member is not
// welcomed.
func TestNewMembersAreWelcomed(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		ann, bob, eve := s.signIn(t, "Ann"), s.signIn(t, "Bob"), s.signIn(t, "Eve")
		domain := f.openDomain(t)
		asked := creation(ann, "k", "crew", bob.ID)
		group := s.settled(t, asked).want(t, http.StatusCreated, "").value(t)["id"].(string)
		s.settled(t, asked).want(t, http.StatusCreated, "")
		s.wantWelcomes(t, domain, ann, group, 1, 2)

		add := request{method: "POST", path: "/v1/groups/" + group + "/members", as: ann, body: `{"member_ids":[2,3]}`}
		for range 2 {
			s.settled(t, add).want(t, http.StatusOK, "")
		}
		s.wantWelcomes(t, domain, eve, group, 1, 2, 3)
		last := s.messagesIn(t, eve, group)[2]
		check.NoDiff(t, cmp.Diff(message{Seq: 3, Author: "Semel", Text: "Welcome, Eve!"}, last), "the last message")

		s.settled(t, creation(ann, "refused", "crew", 99)).want(t, http.StatusUnprocessableEntity, "unknown_member")
		add.body = `{"member_ids":[99]}`
		s.settled(t, add).want(t, http.StatusUnprocessableEntity, "unknown_member")
		s.untilQueue(t, ann, "welcome_member", queueCount{Done: 3})
		s.send(t, request{method: "GET", path: "/v1/users/0", as: ann}).want(t, http.StatusNotFound, "not_found")
	})
}

// queueCount is the server's report of one operation's queue.
type queueCount struct {
	Waiting, Running, Done, Failed int64
	InDoubt                        int64 `json:"in_doubt"`
}

// queueReport is the server's report of its queues.
type queueReport struct {
	Operations []struct {
		Operation string
		queueCount
	}
	Import importReport
}

// queued reads the counts of an operation.
func (c *client) queued(t *testing.T, u user, operation string) queueCount {
	t.Helper()
	for _, o := range read[queueReport](t, c, u, "/v1/queue").Operations {
		if o.Operation == operation {
			return o.queueCount
		}
	}
	t.Fatalf("the queue does not tell of %s", operation)
	return queueCount{}
}

// untilQueue waits until an operation has these counts.
func (c *client) untilQueue(t *testing.T, u user, operation string, want queueCount) {
	t.Helper()
	realtest.Poll(t, fmt.Sprintf("the counts %+v of %s", want, operation), func() bool {
		return c.queued(t, u, operation) == want
	})
}
