package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// TestResolveInDoubt: a program leaves a record InDoubt and an operator
// resolves it. Retries receive the outcome. The note has the actor and the
// reason.
func TestResolveInDoubt(t *testing.T) {
	t.Parallel()
	result := writeFile(t, `"charged"`)
	everyDatabase(t, func(t *testing.T, s *testDB) {
		tests := map[string]struct {
			args  []string
			state store.State
			check func(v string, replayed bool, err error) bool
		}{
			"it happened": {
				[]string{"--to", "succeeded", "--result", result},
				store.Succeeded,
				func(v string, replayed bool, err error) bool { return v == "charged" && replayed && err == nil },
			},
			"it happened, somehow": {
				[]string{"--to", "Succeeded"},
				store.Succeeded,
				func(_ string, _ bool, err error) bool { return errors.Is(err, semel.ErrResultUnavailable) },
			},
			"it did not": {
				[]string{"--to", "failed", "--failure-code", "no_funds", "--failure-message", "not enough money"},
				store.Failed,
				func(_ string, _ bool, err error) bool {
					f, ok := errtype.Find[*semel.Failure](err)
					return ok && f.Code == "no_funds" && f.Message == "not enough money"
				},
			},
			"it did not, and may": {
				[]string{"--to", "pending"},
				store.Pending,
				func(v string, replayed bool, err error) bool { return v == "again" && !replayed && err == nil },
			},
		}
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				call := callOf(name)
				id := s.makeInDoubt(t, call)
				out := s.must(t, append([]string{"resolve", id, "--reason", " asked the bank ", "--actor", "eve"}, tt.args...)...)
				if want := id + " is " + tt.state.String() + " now\n"; out != want || s.state(t, call) != tt.state {
					t.Errorf("resolve wrote %q and the record is %v, want %q", out, s.state(t, call), want)
				}
				s.wantNote(t, call, "eve", "asked the bank", tt.state)
				v, replayed, err := s.do(t, call, "again", nil)
				if !tt.check(v, replayed, err) {
					t.Errorf("asked again: %q, replayed %v, %v", v, replayed, err)
				}
			})
		}
	})
}

// wantNote checks the only note about call, in the store and in the output of
// show.
func (s *testDB) wantNote(t *testing.T, call semel.Call, actor, reason string, to store.State) {
	t.Helper()
	notes, err := admin.Notes(t.Context(), s.engine, call.ID())
	if err != nil || len(notes) != 1 || notes[0].Actor != actor || notes[0].Reason != reason || notes[0].To.State != to {
		t.Errorf("Notes = %+v, %v, want one of %s: %s", notes, err, actor, reason)
	}
	var shown struct {
		Notes []struct{ Actor, Reason, From, To string }
	}
	out := s.must(t, "show", call.ID().String(), "--json")
	check.Require(t, json.Unmarshal([]byte(out), &shown), "show --json")
	want := []struct{ Actor, Reason, From, To string }{{actor, reason, "InDoubt", to.String()}}
	if diff := cmp.Diff(want, shown.Notes); diff != "" {
		t.Errorf("notes shown (-want +got):\n%s", diff)
	}
}

// TestResolveByCallersKey: scope and key name the record instead of the ID, and
// the default actor is $USER.
func TestResolveByCallersKey(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	shared := charge.Call(semel.Shared(), "k", "in")
	s.makeInDoubt(t, shared)
	s.must(t, "resolve", "--operation", "charge", "--shared", "--key", "k", "--to", "pending", "--reason", "looked")
	s.wantNote(t, shared, "ann", "looked", store.Pending)

	call := callOf("k")
	s.makeInDoubt(t, call)
	s.must(t, "resolve", "--operation", "charge", "--scope", "tenant-s3cret", "--scope", "user-s3cret",
		"--key", "k-s3cret", "--to", "failed", "--reason", "looked")
	s.wantNote(t, call, "ann", "looked", store.Failed)
}

// TestResolveWithBytes stores the bytes of standard input unchanged.
func TestResolveWithBytes(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	call := callOf("raw")
	id := s.makeInDoubt(t, call)
	got := runWith(t, "\x00\xff", "resolve", id, "--to", "succeeded", "--result", "-", "--raw", "--reason", "looked", "--db", s.db)
	if got.code != exit.OK {
		t.Fatalf("resolve: code %d, %q", got.code, got.errs)
	}
	_, out, err := adapter.Begin(t.Context(), s.engine, call)
	var raw semel.Raw
	if err != nil || out.Decode(&raw) != nil || string(raw) != "\x00\xff" {
		t.Errorf("Begin = %v, %v: %q is stored, want the bytes", out, err, raw)
	}
}

// TestResolveWithAnotherForm: the answer of another system is easily taken for the result
// of the function. A result that callers could not decode is refused, until the operator
// insists.
func TestResolveWithAnotherForm(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		if _, _, err := s.do(t, callOf("paid"), "v", nil); err != nil {
			t.Fatal(err)
		}
		call := callOf("k")
		id := s.makeInDoubt(t, call)
		args := []string{"resolve", id, "--to", "succeeded", "--reason", "found it", "--result", writeFile(t, `{"id":"ch_1"}`)}
		s.runOn(t, args...).want(t, exit.Usage, "--result is an object; results of operation charge are a string")
		check.Equal(t, s.state(t, call), store.InDoubt, "the record")
		s.must(t, append(args, "--any-form")...)
		check.Equal(t, s.state(t, call), store.Succeeded, "the record")
	})
}

// TestResolveBusyRecord: a record that an open transaction holds can be
// resolved later.
func TestResolveBusyRecord(t *testing.T) {
	t.Parallel()
	s := newPostgres(t)
	call := callOf("k")
	id := s.makeInDoubt(t, call)
	conn := check.Must(pgx.Connect(t.Context(), s.db))(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx := check.Must(conn.Begin(t.Context()))(t)
	check.Must(tx.Exec(t.Context(), `SELECT 1 FROM semel_records FOR UPDATE`))(t)
	s.runOn(t, "resolve", id, "--to", "failed", "--reason", "r").want(t, exit.Failed, "open transaction")
	check.Require(t, tx.Rollback(t.Context()))
	s.must(t, "resolve", id, "--to", "failed", "--reason", "r")
}

// TestThroughAPooler that gives each transaction another connection.
func TestThroughAPooler(t *testing.T) {
	t.Parallel()
	s := newPostgres(t)
	call := callOf("k")
	id := s.makeInDoubt(t, call)
	s.db = realtest.PgBouncer(t, s.db)
	for range 3 {
		s.must(t, "migrate")
		s.must(t, "stats")
		s.must(t, "ls")
		s.must(t, "purge")
	}
	s.must(t, "resolve", id, "--to", "succeeded", "--reason", "r")
	s.must(t, "show", id)
	waiting := s.enqueue(t, mailOf("k"), semel.EnqueueOptions{})
	s.must(t, "reschedule", waiting, "--delay", "1h", "--reason", "r")
	s.must(t, "cancel", waiting, "--reason", "r")
	s.must(t, "redrive", waiting, "--reason", "r")
	s.runOn(t, "resolve", id, "--to", "failed", "--reason", "r").want(t, exit.Refused, "not InDoubt")
}
