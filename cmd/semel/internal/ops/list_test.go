package ops_test

import (
	"database/sql"
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

// TestListReadsAllPages: each record once, with a message if the list stops
// before the end.
func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
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
		check.Must(s.store.Swap(t.Context(), changes))(t)
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
			{"--state InDoubt --operation none", 0, false},
			{"--state indoubt --since 1h", all / 10, false},
			{"--state indoubt --until 1h", 0, false},
			{"--newest --limit 7", 7, true},
			{"--oldest --limit 0", all, false},
			{"--scope none", 0, false},
			{"--key 7", 1, false},
		} {
			got := s.runOn(t, append([]string{"ls", "--json"}, strings.Fields(tt.args)...)...)
			seen := make(map[string]bool)
			for line := range strings.Lines(got.out) {
				var r struct{ ID string }
				check.Require(t, json.Unmarshal([]byte(line), &r), "ls %s", tt.args)
				seen[r.ID] = true
			}
			if got.code != exit.OK || len(seen) != tt.want || strings.Count(got.out, "\n") != tt.want {
				t.Errorf("ls %s: code %d and %d records, want %d, each once", tt.args, got.code, len(seen), tt.want)
			}
			if more := strings.Contains(got.errs, "there are more"); more != tt.more {
				t.Errorf("ls %s printed %q, want that there are more: %v", tt.args, got.errs, tt.more)
			}
		}
	})
}

// TestShowMissingRecord: a missing record has its own exit code.
func TestShowMissingRecord(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		s.runOn(t, "show", strings.Repeat("0", 32)).want(t, exit.NotFound, "there is no record 0000")
		s.runOn(t, "show", "--operation", "charge", "--shared", "--key", "k").want(t, exit.NotFound, "there is no record")
		s.runOn(t, "show", "it").want(t, exit.Usage, "is not a record ID")
		call := charge.Call(semel.Shared(), "k", "in")
		id := s.makeInDoubt(t, call)
		if out := s.must(t, "show", "--operation", "charge", "--shared", "--key", "k"); !strings.Contains(out, id) {
			t.Errorf("show by scope and key wrote %q, want %s", out, id)
		}
	})
}

// TestCompletion offers the states and the operations with records.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	id := s.makeInDoubt(t, callOf("k"))
	s.put(t, store.Record{Token: token(store.Pending, 0), Key: "k"})
	waiting := store.NewID("payout", someScope().Bytes(), "k").String()
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

// TestListByTime uses the time of a record's last change of state.
func TestListByTime(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	db := check.Must(sql.Open("sqlite", strings.TrimPrefix(s.db, "sqlite:")))(t)
	defer db.Close()
	var ids []string // records that have been InDoubt for 0, 2 and 4 hours
	for hours := range 3 {
		call := callOf(fmt.Sprint(hours))
		ids = append(ids, s.makeInDoubt(t, call))
		id := call.ID()
		const inMicroseconds = 2 * 3600 * 1000000 // the unit of the column
		check.Must(db.ExecContext(t.Context(), `UPDATE semel_records SET changed = changed - ? WHERE id = ?`, hours*inMicroseconds, id[:]))(t)
	}
	now := time.Now()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--until", "90m"}, []string{ids[1], ids[2]}},
		{[]string{"--since", "3h"}, []string{ids[0], ids[1]}},
		{[]string{"--since", "3h", "--until", "1h"}, []string{ids[1]}},
		{[]string{"--until", now.Add(-3 * time.Hour).Format(time.RFC3339)}, []string{ids[2]}},
		{[]string{"--newest"}, ids},
		{[]string{"--newest", "--limit", "1"}, ids[:1]},
		{[]string{"--oldest", "--limit", "1"}, ids[2:]},
		{[]string{"--oldest"}, []string{ids[2], ids[1], ids[0]}},
	} {
		got := s.runOn(t, append([]string{"ls", "--json"}, tt.args...)...)
		var listed []string
		for line := range strings.Lines(got.out) {
			var r struct{ ID string }
			check.Require(t, json.Unmarshal([]byte(line), &r))
			listed = append(listed, r.ID)
		}
		want := tt.want
		if !slices.Contains(tt.args, "--newest") && !slices.Contains(tt.args, "--oldest") { // ordered by ID
			slices.Sort(listed)
			want = slices.Sorted(slices.Values(want))
		}
		if !slices.Equal(listed, want) {
			t.Errorf("ls %v listed %v, want %v", tt.args, listed, want)
		}
	}
}

// TestListByFailureCode lists and counts the failures with a code.
func TestListByFailureCode(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		for i, code := range []string{"no_funds", "no_funds", "closed"} {
			if _, _, err := s.do(t, callOf(fmt.Sprint(i)), "", semel.Final(&semel.Failure{Code: code, Message: "m"})); err == nil {
				t.Fatal("the failure was not returned")
			}
		}
		s.makeInDoubt(t, callOf("doubt"))
		for code, want := range map[string]string{"no_funds": "2\n", "closed": "1\n", "none": "0\n"} {
			check.Equal(t, s.must(t, "ls", "--code", code, "--count"), want, "%s: counted", code)
		}
		if got := s.must(t, "ls", "--count", "--limit", "1"); got != "4\n" {
			t.Errorf("counted %q, want all 4", got)
		}
	})
}
