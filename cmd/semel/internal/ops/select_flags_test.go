package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/ops"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// deadLetters makes n dead letters and returns their calls.
func (s *testDB) deadLetters(t *testing.T, n int) (calls []semel.Call) {
	t.Helper()
	for i := range n {
		call := smsOf(fmt.Sprint(i))
		s.enqueue(t, call, semel.EnqueueOptions{})
		s.refuse(t, call, errDown)
		calls = append(calls, call)
	}
	return calls
}

// TestRedriveAllDeadLetters of one operation, after a dry run. Records that
// must not be redriven are not selected.
func TestRedriveAllDeadLetters(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		calls := s.deadLetters(t, 3)
		answered := callOf("answered") // its caller was told that it failed
		if _, _, err := s.do(t, answered, "", semel.Final(errDown)); err == nil {
			t.Fatal("the failure was not returned")
		}
		states := func() (all []store.State) {
			for _, c := range calls {
				all = append(all, s.state(t, c))
			}
			return all
		}
		failed := []store.State{store.Failed, store.Failed, store.Failed}
		out := s.must(t, "redrive", "--all", "--operation", "sms", "--dry-run")
		if !strings.HasSuffix(out, "3 of 3 records would be changed\n") || !slices.Equal(states(), failed) {
			t.Errorf("redrive --dry-run wrote %q and left %v", out, states())
		}
		if out := s.must(t, "redrive", "--all", "--state", "failed", "--since", "1h", "--dry-run", "--json"); strings.Count(out, "\n") != 3 {
			t.Errorf("redrive --dry-run --json wrote %q, want a line for each of the 3 dead letters", out)
		}
		got := s.runOn(t, "redrive", "--all", "--operation", "sms", "--limit", "2", "--reason", "two at first")
		if got.code != exit.OK || strings.Count(got.out, "Pending now") != 2 || !strings.Contains(got.errs, "there are more than 2") {
			t.Errorf("redrive --limit 2: %+v", got)
		}
		s.must(t, "redrive", "--all", "--operation", "sms", "--reason", "the rest")
		if want := []store.State{store.Pending, store.Pending, store.Pending}; !slices.Equal(states(), want) {
			t.Errorf("the tasks are %v, want %v", states(), want)
		}
		if out := s.must(t, "show", calls[0].ID().String()); !strings.Contains(out, "ann made it Pending") {
			t.Errorf("show wrote %q, want a note of the redrive", out)
		}
		got = s.runOn(t, "redrive", "--all", "--operation", "sms", "--reason", "again")
		if got.code != exit.OK || got.out != "" || got.errs != "semel: there is no such record\n" {
			t.Errorf("redrive where there is nothing: %+v", got)
		}
		check.Equal(t, s.state(t, answered), store.Failed, "the caller's key")
	})
}

// TestResolveAllInDoubt of one scope, and cancel of all Pending records.
func TestResolveAllInDoubt(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		mine, other := callOf("mine"), charge.Call(semel.ScopeOf("another"), "k", "in")
		s.makeInDoubt(t, mine)
		s.makeInDoubt(t, other)
		s.must(t, "resolve", "--all", "--scope", "another", "--to", "succeeded", "--reason", "the bank has it")
		if a, b := s.state(t, mine), s.state(t, other); a != store.InDoubt || b != store.Succeeded {
			t.Errorf("the records are %v and %v, want the other scope's alone resolved", a, b)
		}
		if out := s.must(t, "resolve", mine.ID().String(), "--dry-run"); !strings.HasSuffix(out, "1 of 1 records would be changed\n") {
			t.Errorf("resolve --dry-run wrote %q", out)
		}
		got := s.runOn(t, "resolve", other.ID().String(), mine.ID().String(), "--dry-run")
		if !strings.Contains(got.errs, "is Succeeded and would not be changed") || !strings.HasSuffix(got.out, "1 of 2 records would be changed\n") {
			t.Errorf("resolve --dry-run of what is resolved: %+v", got)
		}
		task := smsOf("waits")
		s.enqueue(t, task, semel.EnqueueOptions{})
		s.must(t, "reschedule", "--all", "--operation", "sms", "--delay", "1h", "--reason", "later")
		s.must(t, "cancel", "--all", "--operation", "sms", "--reason", "not at all")
		check.Equal(t, s.state(t, task), store.Failed, "the task")
	})
}

// TestShowSeveralRecords: missing records are reported.
func TestShowSeveralRecords(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	first, second, none := s.makeInDoubt(t, callOf("1")), s.makeInDoubt(t, callOf("2")), strings.Repeat("0", 32)
	got := s.runOn(t, "show", first, none, second)
	if got.code != exit.Failed || !strings.Contains(got.out, first) || !strings.Contains(got.out, second) ||
		!strings.Contains(got.errs, "there is no record "+none) || !strings.Contains(got.errs, "2 of 3 records were shown") {
		t.Errorf("show: %+v", got)
	}
	got = runWith(t, first+"\n"+second+"\n", "show", "-", "--json", "--db", s.db)
	if got.code != exit.OK || strings.Count(got.out, "\n") != 2 {
		t.Errorf("show - --json: %+v, want a line for each record", got)
	}
}

// TestAllChecksAgainBeforeTheChange: cancel --all does not cancel a record that
// a worker has claimed after it was selected.
func TestAllChecksAgainBeforeTheChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state string
		now   store.State
		want  bool
	}{
		{"pending", store.Pending, true},
		{"pending", store.InProgress, false},
		{"", store.InProgress, true},
		{"", store.Succeeded, false},
	} {
		check.Result(ops.StillSelected(tt.state, tt.now))(t, tt.want, "--state %q still selects a record that is %v now", tt.state, tt.now)
	}
}
