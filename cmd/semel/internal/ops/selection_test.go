package ops_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestResolveSeveralRecords: a record that cannot be changed does not stop the
// command. The last line of the errors has the number of changed records.
func TestResolveSeveralRecords(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		one, done, two := callOf("one"), callOf("done"), callOf("two")
		first, second := s.makeInDoubt(t, one), s.makeInDoubt(t, two)
		if _, _, err := s.do(t, done, "v", nil); err != nil {
			t.Fatal(err)
		}
		none := strings.Repeat("0", 32)
		got := s.runOn(t, "resolve", first, done.ID().String(), none, second, first, "--to", "pending", "--reason", "the bank was down")
		if got.code != exit.Failed || !strings.Contains(got.errs, "not InDoubt") || !strings.Contains(got.errs, "there is no record "+none) ||
			!strings.HasSuffix(got.errs, "semel: 2 of 4 records were changed\n") {
			t.Errorf("resolve: code %d, errors %q", got.code, got.errs)
		}
		if want := fmt.Sprintf("%s is Pending now\n%s is Pending now\n", first, second); got.out != want {
			t.Errorf("resolve wrote %q, want %q", got.out, want)
		}
		for _, c := range []semel.Call{one, two} {
			check.Equal(t, s.state(t, c), store.Pending, "%v", c.ID())
		}
	})
}

// TestIDsFromStandardInput: with "-" a command reads the IDs that another one
// has listed. Each change has a note.
func TestIDsFromStandardInput(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		var ids []string
		for i := range 3 {
			call := smsOf(fmt.Sprint(i))
			s.enqueue(t, call, semel.EnqueueOptions{})
			ids = append(ids, s.refuse(t, call, errDown))
		}
		got := runWith(t, "  "+strings.Join(ids, "\n")+"\n\n", "redrive", "-", "--reason", "asked the team", "--actor", "eve", "--json", "--db", s.db)
		if got.code != exit.OK || got.errs != "" {
			t.Fatalf("redrive -: code %d, errors %q", got.code, got.errs)
		}
		var redriven []string
		for line := range strings.Lines(got.out) {
			var c changedOutput
			check.Require(t, json.Unmarshal([]byte(line), &c))
			if c.Was != "Failed" || c.State != "Pending" {
				t.Errorf("redrive wrote %+v", c)
			}
			redriven = append(redriven, c.ID)
		}
		if !slices.Equal(redriven, ids) {
			t.Errorf("redriven were %v, want %v", redriven, ids)
		}
		s.wantNotes(t, ids[2], "Failed to Pending")
		for _, args := range [][]string{{"cancel"}, {"reschedule", "--delay", "1d"}} {
			args = append(args, ids...)
			if out := s.must(t, append(args, "--reason", "r")...); strings.Count(out, "\n") != len(ids) {
				t.Errorf("%v wrote %q, want a line for each record", args, out)
			}
			if args[0] == "cancel" {
				s.must(t, append(append([]string{"redrive"}, ids...), "--reason", "again")...)
			}
		}
		if got := runWith(t, "", "redrive", "-", "--reason", "none", "--db", s.db); got.code != exit.OK || got.out != "" || got.errs != "" {
			t.Errorf("redrive of no record: %+v, want no change", got)
		}
	})
}

// TestListOverdue reads all pages, ordered by the time the records were due. An
// empty list has a heading.
func TestListOverdue(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		if out := s.must(t, "ls", "--overdue"); !strings.HasPrefix(out, "ID ") || strings.Count(out, "\n") != 1 {
			t.Errorf("an empty list is %q, want a heading", out)
		}
		if out := s.must(t, "ls", "--overdue", "--json"); out != "" {
			t.Errorf("an empty list for programs is %q, want nothing", out)
		}
		const all = store.DefaultLimit + 5
		changes := make([]store.Change, all+1)
		for i := range changes {
			r := store.Record{Token: token(store.Pending, 0), Operation: "bulk", Scope: "s", Key: fmt.Sprint(i)}
			r.Due = -time.Duration(i) * time.Hour
			if i == 0 {
				r.Due = time.Hour
			}
			r.ID = store.NewID(r.Operation, r.Scope, r.Key)
			changes[i].To = r
		}
		check.Must(s.store.Swap(t.Context(), changes))(t)
		var want, got []string
		for _, c := range slices.Backward(changes[1:]) {
			want = append(want, c.To.ID.String())
		}
		for line := range strings.Lines(s.must(t, "ls", "--overdue", "--json", "--limit", "0")) {
			var r struct{ ID string }
			check.Require(t, json.Unmarshal([]byte(line), &r))
			got = append(got, r.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed were %d records %v, want %d in the order of their Due", len(got), got, len(want))
		}
	})
}
