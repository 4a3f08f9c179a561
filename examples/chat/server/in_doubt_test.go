package server_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// commits is a database whose commits have no reply while lost is set.
type commits struct {
	lost    atomic.Bool
	applied atomic.Bool // whether such a commit is applied nevertheless
}

var errUndone = errors.New("undone")

func (c *commits) hooks() server.Hooks {
	return server.Hooks{Domain: func(next server.TransactFunc) server.TransactFunc {
		return func(ctx context.Context, fn func(context.Context, chatdb.Tx) error) error {
			err := next(ctx, func(ctx context.Context, tx chatdb.Tx) error {
				err := fn(ctx, tx)
				if err == nil && c.lost.Load() && !c.applied.Load() {
					return errUndone
				}
				return err
			})
			if c.lost.Load() {
				return server.ErrCommit
			}
			return err
		}
	}}
}

// TestCommitWithoutAnAnswer loses the reply to a commit, with the records in
// another database. The probes find out whether the commit was applied.
func TestCommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f, c := newFiles(t, records), new(commits)
	s := serveLocal(t, c.hooks(), f.args(time.Minute)...)
	owner, domain := s.signIn(t, "owner"), f.openDomain(t)

	c.lost.Store(true)
	c.applied.Store(true)
	s.send(t, creation(owner, "applied", "crew")).want(t, http.StatusCreated, "")
	s.send(t, signUp("applied", "ann")).want(t, http.StatusCreated, "")
	c.applied.Store(false)
	s.send(t, signUp("undone", "bob")).want(t, http.StatusServiceUnavailable, "outcome_unknown")
	s.send(t, creation(owner, "undone", "crew")).want(t, http.StatusServiceUnavailable, "outcome_unknown")
	// An endpoint without a key must report the unknown outcome, too.
	s.send(t, request{method: "POST", path: "/v1/sessions", body: `{"name":"owner","password":"` + password + `"}`}).
		want(t, http.StatusServiceUnavailable, "outcome_unknown")
	c.lost.Store(false)

	for _, replayed := range []request{creation(owner, "applied", "crew"), signUp("applied", "ann")} {
		check.Equal(t, s.send(t, replayed).want(t, http.StatusCreated, "").Replayed, true, "%s is replayed", replayed.path)
	}
	s.send(t, signUp("new", "ann")).want(t, http.StatusConflict, "name_taken")
	check.Equal(t, creations(t, domain, owner, "applied"), 1, "applied: creations")
	s.send(t, creation(owner, "undone", "something else")).want(t, http.StatusUnprocessableEntity, "key_reused")
	// A group of the same name is no evidence.
	s.send(t, creation(owner, "undone", "crew")).want(t, http.StatusConflict, "outcome_unknown")
	check.Equal(t, creations(t, domain, owner, "undone"), 0, "undone: creations")
}

// leaveInDoubt runs a server with the records in another database, which does not know whether a
// creation was committed. It was not.
func leaveInDoubt(t *testing.T) (f files, s *localServer, owner user, asked request) {
	t.Helper()
	c := new(commits)
	f = newFiles(t, records)
	s = serveLocal(t, c.hooks(), f.args(time.Minute)...)
	owner = s.signIn(t, "owner")
	asked = creation(owner, "secret-key", "crew")
	c.lost.Store(true)
	s.send(t, asked).want(t, http.StatusServiceUnavailable, "outcome_unknown")
	c.lost.Store(false)
	return f, s, owner, asked
}

// TestOperatorResolves lists and resolves a record in doubt while the server runs.
func TestOperatorResolves(t *testing.T) {
	t.Parallel()
	f, s, owner, asked := leaveInDoubt(t)
	list, code := f.operator(t, "doubts")
	id, rest, _ := strings.Cut(list, "  ")
	if code != 0 || !strings.HasPrefix(rest, "create_group of user 1, attempt 1, in doubt for ") || strings.Contains(list, "secret") {
		t.Fatalf("doubts: exit %d, %q", code, list)
	}
	if text, code := f.operator(t, "resolve", id, "pending", "looked: there", "is no such group"); code != 0 || text != id+" is Pending now\n" {
		t.Errorf("resolve: exit %d, %q", code, text)
	}
	if list, code := f.operator(t, "doubts"); code != 0 || list != "" {
		t.Errorf("doubts afterwards: exit %d, %q", code, list)
	}
	s.send(t, asked).want(t, http.StatusCreated, "")
	check.Equal(t, creations(t, f.openDomain(t), owner, asked.key), 1, "creations")
	_, code = f.operator(t, "resolve", id, "failed", "too late")
	check.Equal(t, code, 1, "the exit code of resolving what is settled")
	engine := f.engine(t)
	notes, err := admin.Notes(t.Context(), engine, f.recordOf(t, engine, owner, asked.key).ID)
	if err != nil || len(notes) != 1 || notes[0].Reason != "looked: there is no such group" {
		t.Errorf("notes: %+v, %v; want the one reason", notes, err)
	}
}

// TestMistakenResolutionCreatesNoSecondGroup resolves a record as not executed
// although the group was created meanwhile.
func TestMistakenResolutionCreatesNoSecondGroup(t *testing.T) {
	t.Parallel()
	f, s, owner, asked := leaveInDoubt(t)
	list, _ := f.operator(t, "doubts")
	id, _, _ := strings.Cut(list, "  ")
	if text, code := f.operator(t, "resolve", id, "pending", "there is none"); code != 0 {
		t.Fatalf("resolve: exit %d, %q", code, text)
	}
	lateCommit(t, openFile(t, f.domain), owner, asked.key)
	got := s.send(t, asked).want(t, http.StatusCreated, "").value(t)
	if groups := s.groupsOf(t, owner); len(groups) != 1 || got["id"] != "grp_late" {
		t.Errorf("answered %v; the groups are %v, want the late one alone", got["id"], groups)
	}
}

// lateCommit commits a group as a leader does after its lease has expired.
func lateCommit(t *testing.T, domain *sql.DB, owner user, key string) {
	t.Helper()
	for _, statement := range []string{
		`insert into groups (id, name, owner_id, created_at, last_change, creation_key) values ('grp_late', 'crew', ?1, 1, 1, ?2)`,
		`insert into conversations (id, group_id) values ('cnv_late', 'grp_late')`,
		`insert into memberships (group_id, user_id, joined) values ('grp_late', ?1, 1)`,
		`insert into creations (owner, "key", attempt) values (?1, ?2, 1)`,
	} {
		check.Must(domain.ExecContext(t.Context(), statement, owner.ID, key))(t)
	}
}

// operator runs an operator's command while the server runs.
func (f files) operator(t *testing.T, command ...string) (stdout string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = server.Main(t.Context(), append(f.args(time.Minute), command...), os.Getenv, &out, t.Output())
	return out.String(), code
}
