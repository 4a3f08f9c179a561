package ops_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/store"
)

// TestListGoesThroughAllPages, each record once, and says when it stops before
// the end.
func TestListGoesThroughAllPages(t *testing.T) {
	t.Parallel()
	everySite(t, func(t *testing.T, s *site) {
		const all = 2*store.DefaultLimit + 30
		changes := make([]store.Change, all)
		for i := range changes {
			r := store.Record{Token: token(store.Succeeded, 1), Operation: "bulk", Scope: "s", Key: fmt.Sprint(i), Expire: time.Hour}
			if i%10 == 0 {
				r.State = store.InDoubt
				r.Expire = 0
			}
			r.ID = store.NewID(r.Operation, r.Scope, r.Key)
			changes[i].To = r
		}
		if _, err := s.store.Swap(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			args string
			want int
			more bool
		}{
			{"--limit 0", all, false},
			{"", 100, true},
			{fmt.Sprint("--limit ", all), all, false},
			{fmt.Sprint("--limit ", all-1), all - 1, true},
			{"--state indoubt", all / 10, false},
			{"--state IN_DOUBT --operation none", 0, false},
		} {
			got := s.on(t, append([]string{"ls", "--json"}, strings.Fields(tt.args)...)...)
			seen := make(map[string]bool)
			for line := range strings.Lines(got.out) {
				var r struct{ ID string }
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatalf("ls %s: %v", tt.args, err)
				}
				seen[r.ID] = true
			}
			if got.code != exit.OK || len(seen) != tt.want || strings.Count(got.out, "\n") != tt.want {
				t.Errorf("ls %s: code %d and %d records, want %d, each once", tt.args, got.code, len(seen), tt.want)
			}
			if more := strings.Contains(got.errs, "there are more"); more != tt.more {
				t.Errorf("ls %s told %q, want that there are more: %v", tt.args, got.errs, tt.more)
			}
		}
	})
}

func TestListWithWrongFlags(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for want, args := range map[string][]string{
		`--state "done" is none of pending, inprogress`: {"--state", "done"},
		"--limit -1":      {"--limit", "-1"},
		"--older-than -1": {"--older-than", "-1h"},
		"--older-than":    {"--older-than", "long"},
		"unknown command": {"everything"},
	} {
		s.on(t, append([]string{"ls"}, args...)...).want(t, exit.Usage, want)
	}
}

// TestShowWhatIsNot: not found is told apart from what went wrong.
func TestShowWhatIsNot(t *testing.T) {
	t.Parallel()
	everySite(t, func(t *testing.T, s *site) {
		s.on(t, "show", strings.Repeat("0", 32)).want(t, exit.NotFound, "there is no record 0000")
		s.on(t, "show", "--operation", "charge", "--shared", "--key", "k").want(t, exit.NotFound, "there is no record")
		s.on(t, "show", "it").want(t, exit.Usage, "is not a record ID")
		call := charge.Call(semel.Shared(), "k", "in")
		id := s.doubt(t, call)
		if out := s.must(t, "show", "--operation", "charge", "--shared", "--key", "k"); !strings.Contains(out, id) {
			t.Errorf("show by what the caller sent wrote %q, want %s", out, id)
		}
	})
}

// TestCompletion offers the states, and the operations that have records.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.doubt(t, callOf("k"))
	s.put(t, store.Record{Token: token(store.Pending, 0), Key: "k"})
	waiting := store.NewID("payout", someone().Bytes(), "k").String()
	s.enqueue(t, smsOf("k"), semel.EnqueueOptions{})
	failed := s.refuse(t, smsOf("k"), errDown)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"ls", "--state", ""}, "pending inprogress indoubt succeeded failed"},
		{[]string{"resolve", "--to", ""}, "succeeded failed pending"},
		{[]string{"ls", "--db", s.db, "--operation", ""}, "charge payout sms"},
		{[]string{"show", "--db", s.db, "--operation", "pay"}, "payout"},
		{[]string{"ls", "--db", s.db + ".none", "--operation", ""}, ""},
		{[]string{"ls", "--operation", ""}, ""},
		{[]string{"resolve", "--db", s.db, ""}, id},
		{[]string{"resolve", "--db", s.db, id[:4]}, id},
		{[]string{"resolve", "--db", s.db, "x"}, ""},
		{[]string{"resolve", "--db", s.db, id, ""}, ""},
		{[]string{"stats", ""}, ""},
		{[]string{"redrive", "--db", s.db, ""}, failed},
		{[]string{"cancel", "--db", s.db, ""}, waiting},
		{[]string{"reschedule", "--db", s.db, waiting[:4]}, waiting},
		{[]string{"cancel", "--db", s.db, "--operation", "s"}, "sms"},
		{[]string{"partitions", ""}, "ahead divide drop list"},
		{[]string{"journal", ""}, "ls settle"},
	} {
		got := run(t, append([]string{"__complete"}, tt.args...)...)
		var words []string
		for line := range strings.Lines(got.out) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
				words = append(words, word)
			}
		}
		if all := strings.Join(words, " "); got.code != exit.OK || all != tt.want {
			t.Errorf("completion of %v: code %d, %q, want %q", tt.args, got.code, all, tt.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := must(t, "completion", shell); !strings.Contains(script, "semel") {
			t.Errorf("completion %s wrote %q", shell, script)
		}
	}
}

// TestListOfWhatIsOld goes by the time since a record was created.
func TestListOfWhatIsOld(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	old, young := callOf("old"), callOf("young")
	s.doubt(t, old)
	s.doubt(t, young)
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.db, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	id := old.ID()
	const twoHours = 2 * 3600 * 1000000 // in microseconds, as they are stored
	if _, err := db.ExecContext(t.Context(), `UPDATE semel_records SET created = created - ? WHERE id = ?`, twoHours, id[:]); err != nil {
		t.Fatal(err)
	}
	out := s.must(t, "ls", "--older-than", "90m")
	if !strings.Contains(out, old.ID().String()) || strings.Contains(out, young.ID().String()) || !strings.Contains(out, "2h0m") {
		t.Errorf("ls --older-than 90m wrote %s; want the old one alone", out)
	}
}
