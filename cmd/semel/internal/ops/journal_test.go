package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/ops"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// runs has the IDs of the calls that have run their function.
type runs struct{ sync.Map }

func (r *runs) has(id store.ID) bool {
	_, has := r.Load(id)
	return has
}

// refuse refuses the outcomes of functions that have run, and changes that come with one.
func (r *runs) refuse(c storetest.Call) storetest.Fault {
	if slices.ContainsFunc(c.Changes, func(c store.Change) bool { return c.To.State != store.InProgress && r.has(c.To.ID) }) {
		return storetest.Refuse()
	}
	return storetest.Fault{}
}

// end is the end of an attempt.
type end struct {
	call semel.Call
	v    string
	err  error
}

// leaveJournal runs a program that cannot record outcomes. It returns the path
// of the program's journal.
func (s *testDB) leaveJournal(t *testing.T, ends ...end) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal")
	j := check.Must(journal.Open(path))(t)
	var ran runs
	e := s.broken(t, ran.refuse, semel.Options{Journal: j, RecordTimeout: 2 * time.Second})
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, end := range ends {
		all.Go(func() {
			var err error
			again := realtest.Retry(limit, func() bool { // a busy database may not answer a claim within RecordTimeout
				_, _, err = semel.Do(t.Context(), e, end.call, func(context.Context) (string, error) {
					ran.Store(end.call.ID(), nil)
					return end.v, end.err
				})
				return ran.has(end.call.ID())
			})
			if again != nil || (err == nil) != (end.err == nil) {
				t.Errorf("Do = %v, %v, its function %v", err, again, end.err)
			}
		})
	}
	all.Wait()
	cancel()
	_ = e.Close(limit) // gives up at once
	return path
}

// settledOutput is a line of settle --json.
type settledOutput struct {
	ID, Ended, Settled, State, Error string
	Dropped                          bool
}

// settle runs settle and returns the result of each entry, by its ID.
func (s *testDB) settle(t *testing.T, path string, args ...string) (result, map[string]settledOutput) {
	t.Helper()
	got := s.runOn(t, append([]string{"journal", "settle", path, "--json"}, args...)...)
	all := make(map[string]settledOutput)
	for line := range strings.Lines(got.out) {
		var e settledOutput
		check.Require(t, json.Unmarshal([]byte(line), &e), "settle --json wrote %q", line)
		all[e.ID] = e
	}
	return got, all
}

// listed returns the number of entries that journal ls prints.
func listed(t *testing.T, path string) int {
	t.Helper()
	return strings.Count(must(t, "journal", "ls", path, "--json"), "\n")
}

// TestJournalSettle: the entries of a dead program's journal are listed,
// recorded and dropped, and retries receive the outcomes.
func TestJournalSettle(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		done, lost, kept := callOf("done"), callOf("lost"), callOf("kept")
		failure := semel.Final(&semel.Failure{Code: "no_funds", Message: "not enough money"})
		path := s.leaveJournal(t, end{call: done, v: "v-s3cret"}, end{call: lost, err: semel.NotCommitted(errDown)}, end{call: kept, err: failure})
		for _, call := range []semel.Call{done, lost, kept} {
			if now := s.state(t, call); now != store.InProgress {
				t.Fatalf("the record is %v, want InProgress", now)
			}
		}
		out := must(t, "journal", "ls", path)
		if !strings.Contains(out, "failure no_funds: not enough money") || strings.Contains(out, "s3cret") || strings.Count(out, "\n") != 4 {
			t.Errorf("journal ls wrote %s", out)
		}
		if out := must(t, "journal", "ls", path, "--reveal"); !strings.Contains(out, `"v-s3cret"`) || !strings.Contains(out, "key done-s3cret") {
			t.Errorf("journal ls --reveal wrote %s", out)
		}

		got, one := s.settle(t, path, kept.ID().String())
		if got.code != exit.OK || len(one) != 1 || s.state(t, kept) != store.Failed || listed(t, path) != 2 {
			t.Errorf("settle of one: code %d, %+v, and %d are left; want that one recorded", got.code, one, listed(t, path))
		}
		got, all := s.settle(t, path)
		want := map[string]settledOutput{
			done.ID().String(): {ID: done.ID().String(), Ended: "succeed", Settled: "recorded", State: "Succeeded", Dropped: true},
			lost.ID().String(): {ID: lost.ID().String(), Ended: "release", Settled: "recorded", State: "Pending", Dropped: true},
		}
		if diff := cmp.Diff(want, all); diff != "" || got.code != exit.OK || got.errs != "" {
			t.Errorf("settle: code %d, %q (-want +got):\n%s", got.code, got.errs, diff)
		}
		check.Equal(t, listed(t, path), 0, "entries are left")
		if v, replayed, err := semel.Do(t.Context(), s.engine, done, nothing); v != "v-s3cret" || !replayed || err != nil {
			t.Errorf("retry: %q, %v, %v, want the result replayed", v, replayed, err)
		}
		if v, replayed, err := s.do(t, lost, "again", nil); v != "again" || replayed || err != nil {
			t.Errorf("retry: %q, %v, %v, want a run", v, replayed, err)
		}
		if _, _, err := semel.Do(t.Context(), s.engine, kept, nothing); !semel.Replayed(err) {
			t.Errorf("retry: %v, want the failure replayed", err)
		}
	})
}

// overwrite changes the record of c, as another process would.
func (s *testDB) overwrite(t *testing.T, c semel.Call, state store.State) {
	t.Helper()
	answers, err := s.store.Get(t.Context(), []store.ID{c.ID()})
	if err != nil || answers[0].Record == nil {
		t.Fatalf("Get = %+v, %v", answers, err)
	}
	to := *answers[0].Record
	to.State, to.Owner, to.Due, to.Outcome = state, to.Owner+1, 0, []byte(`j"other"`)
	if state == store.Failed {
		to.Outcome = []byte(`f{"message":"resolved as failed"}`)
	}
	change := store.Change{If: answers[0].Token, To: to}
	if answers, err = s.store.Swap(t.Context(), []store.Change{change}); err != nil || !answers[0].Applied(change) {
		t.Fatalf("Swap = %+v, %v", answers, err)
	}
}

// TestSettleAfterTheRecordChanged: the other process's outcome stays, and an
// entry in conflict is reported and kept.
func TestSettleAfterTheRecordChanged(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	conflict, agreed, doubted := callOf("conflict"), callOf("agreed"), callOf("doubted")
	path := s.leaveJournal(t, end{call: conflict, v: "v"}, end{call: agreed, v: "v"}, end{call: doubted, err: semel.NotCommitted(errDown)})
	s.overwrite(t, conflict, store.Failed)
	s.overwrite(t, agreed, store.Succeeded)
	s.overwrite(t, doubted, store.InDoubt)

	check := func(code int, want map[string]string, args ...string) {
		t.Helper()
		got, all := s.settle(t, path, args...)
		settled, dropped := make(map[string]string), 0
		for _, call := range []semel.Call{conflict, agreed, doubted} {
			if e, ok := all[call.ID().String()]; ok {
				settled[strings.TrimSuffix(call.Key(), "-s3cret")] = e.Settled + ", " + e.State
				if e.Dropped {
					dropped++
				}
			}
		}
		if diff := cmp.Diff(want, settled); diff != "" || got.code != code {
			t.Errorf("settle %v: code %d, want %d (-want +got):\n%s", args, got.code, code, diff)
		}
		if left := len(want) - dropped; listed(t, path) != left || (code == exit.OK) != (left == 0) {
			t.Errorf("settle %v: %d dropped, %d are left, code %d", args, dropped, listed(t, path), code)
		}
	}
	check(exit.Failed, map[string]string{
		"conflict": "conflict, Failed", "agreed": "superseded, Succeeded", "doubted": "in_doubt, InDoubt",
	})
	check(exit.Failed, map[string]string{"conflict": "conflict, Failed", "doubted": "in_doubt, InDoubt"})
	check(exit.Failed, map[string]string{"conflict": "conflict, Failed", "doubted": "in_doubt, InDoubt"}, "--drop")
	s.must(t, "resolve", doubted.ID().String(), "--to", "pending", "--reason", "the journal says so")
	check(exit.OK, map[string]string{"doubted": "superseded, Pending"})
	if now := s.state(t, conflict); now != store.Failed {
		t.Errorf("the record is %v, want the other process's outcome", now)
	}
}

// TestSettleInAnotherDatabase drops nothing, because there is no record.
func TestSettleInAnotherDatabase(t *testing.T) {
	t.Parallel()
	call := callOf("k")
	s, other := newSQLite(t), newSQLite(t)
	path := s.leaveJournal(t, end{call: call, v: "v"})
	got, all := other.settle(t, path)
	if e := all[call.ID().String()]; got.code != exit.Failed || e.Settled != "absent" || e.Dropped || listed(t, path) != 1 {
		t.Errorf("settle: code %d, %+v, and %d are left; want it absent and kept", got.code, e, listed(t, path))
	}
	if got, all = s.settle(t, path); got.code != exit.OK || all[call.ID().String()].Settled != "recorded" {
		t.Errorf("settle in the right database: code %d, %+v", got.code, all)
	}
}

// TestUnreadableJournalLines are reported with their numbers and stay in the
// file. The other entries are settled.
func TestUnreadableJournalLines(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	call := callOf("k")
	path := s.leaveJournal(t, end{call: call, v: "v"})
	text := "scribble\n" + read(t, path) + `{"Keep":`
	check.Require(t, os.WriteFile(path, []byte(text), 0o600))
	for _, args := range [][]string{{"journal", "ls", path}, {"journal", "ls", path, "--json"}, {"journal", "settle", path, "--db", s.db}} {
		got := run(t, args...)
		for _, want := range []string{"line 1: ", "line 3 is incomplete", "has 1 unreadable lines"} {
			if !strings.Contains(got.errs, want) {
				t.Errorf("semel %v printed %q, want %q", args, got.errs, want)
			}
		}
		if !strings.Contains(got.out, call.ID().String()) || got.code != exit.Failed {
			t.Errorf("semel %v: code %d, wrote %q, want the entry that can be read", args, got.code, got.out)
		}
		if json := strings.Contains(got.out, `{"line":1,"error":"`); json != (len(args) == 4) {
			t.Errorf("semel %v wrote %q; want the unreadable lines in JSON too", args, got.out)
		}
	}
	if now := read(t, path); now != text {
		t.Errorf("the journal is %q, want it as it was", now)
	}
	if v, replayed, err := semel.Do(t.Context(), s.engine, call, nothing); v != "v" || !replayed || err != nil {
		t.Errorf("retry: %q, %v, %v, want the settled outcome", v, replayed, err)
	}
	check.Require(t, os.WriteFile(path, []byte(strings.TrimPrefix(text, "scribble\n")), 0o600))
	if got, _ := s.settle(t, path); got.code != exit.OK || listed(t, path) != 0 {
		t.Errorf("settle without that line: code %d, %d are left", got.code, listed(t, path))
	}
}

// TestSettleWithoutDatabase keeps all entries.
func TestSettleWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	path := s.leaveJournal(t, end{call: callOf("k"), v: "v"})
	before := read(t, path)
	run(t, "journal", "settle", path, "--db", "postgres://127.0.0.1:1/d").want(t, exit.Unavailable, "connect")
	run(t, "journal", "settle", path).want(t, exit.Usage, "--db is required")
	s.runOn(t, "journal", "settle", path, strings.Repeat("0", 32)).want(t, exit.NotFound, "has no entry 0000")
	s.runOn(t, "journal", "settle", path, "k").want(t, exit.Usage, "is not a record ID")
	s.runOn(t, "journal", "settle", path+".none").want(t, exit.Usage, "FILE: ")
	run(t, "journal", "ls", path+".none").want(t, exit.Usage, "FILE: ")
	run(t, "journal", "ls", t.TempDir()).want(t, exit.Failed, "directory")
	run(t, "journal", "ls").want(t, exit.Usage, "accepts 1 arg")
	run(t, "journal", "nonsense").want(t, exit.Usage, "unknown command")
	if now := read(t, path); now != before {
		t.Errorf("the journal is %q, want it as it was", now)
	}
}

// TestSettleStopsWithoutAnswers: entries that the database does not accept are
// kept. If the database does not answer at all, settle stops.
func TestSettleStopsWithoutAnswers(t *testing.T) {
	t.Parallel()
	path := newSQLite(t).leaveJournal(t, end{call: callOf("a"), v: "v"}, end{call: callOf("b"), v: "v"})
	for _, tt := range []struct {
		mute  bool
		lines int
		code  int
	}{{false, 2, exit.Failed}, {true, 1, exit.Unavailable}} {
		s := storetest.NewFaultyTx(memory.New(memory.Options{}), func(c storetest.Call) storetest.Fault {
			if c.Method == "Swap" || tt.mute && c.Method == "Get" {
				return storetest.Refuse()
			}
			return storetest.Fault{}
		})
		engine := engineOver(t, s, semel.Options{RecordTimeout: 200 * time.Millisecond})
		var out bytes.Buffer
		err := ops.Settle(t.Context(), &out, path, engine, s)
		if code := exit.CodeOf(err); code != tt.code || strings.Count(out.String(), ", kept\n") != tt.lines {
			t.Errorf("settle: code %d, %v, wrote %q; want code %d and %d lines", code, err, out.String(), tt.code, tt.lines)
		}
		check.Equal(t, listed(t, path), 2, "entries are left")
	}
}
