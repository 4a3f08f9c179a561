package sim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// atLeastOncePlan has a caller whose lease expires after its effect, and a
// second caller that runs the function again. Only AtLeastOnce allows this.
func atLeastOncePlan() Plan {
	return Plan{Name: "broken/promise", Mode: "atleastonce", Callers: "xx", Budget: Budget{Crashes: 1, Expiries: 1}}
}

// TestCheckerSeesABrokenPromise: AtLeastOnce held to one effect breaks I1; the
// run is printed, shortened, and its line repeats the run.
func TestCheckerSeesABrokenPromise(t *testing.T) {
	t.Parallel()
	s := check.Must(newStage(atLeastOncePlan(), nil))(t)
	s.mode.repeats = false
	v := s.explore(nil).Violation
	if v == nil || v.Invariant != "I1" {
		t.Fatalf("explore = %v, want a violation of I1", v)
	}
	trace := strings.Join(v.Trace, "\n")
	for _, want := range []string{"C1 act as attempt 1: x/s1/C1", "the lease of InProgress(1,C1.1) is over", "C1 dies before it can"} {
		if !strings.Contains(trace, want) {
			t.Errorf("the trace does not say %q:\n%s", want, trace)
		}
	}
	script := check.Must(parseScript(strings.TrimPrefix(v.Replay, "broken/promise:")))(t)
	again := again(s, script)
	s.close()
	if again.found == nil || again.found.Text != v.Text || !slices.Equal(again.trace.lines, v.Trace) {
		t.Errorf("replaying %s gives %v, want the same run", v.Replay, again.found)
	}
}

// TestReplayPrintsAValidRun: the same run, held to what it promised.
func TestReplayPrintsAValidRun(t *testing.T) {
	t.Parallel()
	plans := []Plan{atLeastOncePlan()}
	lines, v, err := Replay("broken/promise:", plans)
	if err != nil || v != nil || !strings.Contains(strings.Join(lines, "\n"), `C2 receives ok, replayed: "x/s1/C1"`) {
		t.Errorf("Replay = %v, %v:\n%s", v, err, strings.Join(lines, "\n"))
	}
	for _, bad := range []string{"no/plan:0", "broken/promise:!"} {
		if _, _, err := Replay(bad, plans); err == nil {
			t.Errorf("Replay(%q) found something to replay", bad)
		}
	}
	if _, v, _ = Replay("broken/promise:z", plans); v == nil || v.Invariant != "script" {
		t.Errorf("Replay of a script that does not fit = %v, want an error", v)
	}
}

// TestOnlyWatchedInvariantsCount keeps mutants honest: what is not watched is
// not found.
func TestOnlyWatchedInvariantsCount(t *testing.T) {
	t.Parallel()
	s := check.Must(newStage(atLeastOncePlan(), []string{"I6"}))(t)
	s.mode.repeats = false
	if v := s.explore(nil).Violation; v != nil {
		t.Errorf("watching I6 finds %v", v)
	}
}

// TestGhostGetsNowhere: a process that is dead goes on to its end, and nothing
// it requests is done.
func TestGhostGetsNowhere(t *testing.T) {
	t.Parallel()
	s := check.Must(newStage(atLeastOncePlan(), nil))(t)
	defer s.close()
	w := newWorld(s, new(chooser), new(Marks))
	defer w.cleanUp()
	var asked []store.SwapResult
	ended := false
	id := w.rows[0].id
	a := w.enlist(role{name: "G", body: func(ctx context.Context, a *actor) {
		st := a.proc.store
		for range 2 {
			c := store.Change{To: store.Record{ID: id, Token: store.Token{State: store.InProgress, Attempt: 1, Owner: 7}}}
			answers, err := st.Swap(ctx, []store.Change{c})
			check.NoError(t, err, "Swap")
			asked = append(asked, answers...)
		}
		verdict, err := st.Atomic(ctx, id, true, nil)
		if verdict != store.NotCommitted || err == nil {
			t.Errorf("a ghost's Atomic = %v, %v", verdict, err)
		}
		ended = true
	}})
	a.start(s.coroutine(0))
	a.proc.crash()
	if !ended || len(asked) != 2 || asked[0].Token.State != store.Succeeded {
		t.Errorf("ended %v, received %v", ended, asked)
	}
	if w.rows[0].rec.State != store.Absent || w.found != nil {
		t.Errorf("the record has %v, %v", w.rows[0].rec.Token, w.found)
	}
}

// TestAPanicOfTheEngineIsAFinding, and no crash of the explorer.
func TestAPanicOfTheEngineIsAFinding(t *testing.T) {
	t.Parallel()
	s := check.Must(newStage(atLeastOncePlan(), nil))(t)
	defer s.close()
	w := newWorld(s, new(chooser), new(Marks))
	w.enlist(role{name: "P", body: func(context.Context, *actor) { panic("boom") }}).start(s.coroutine(0))
	if w.found == nil || w.found.Invariant != "panic" || !strings.Contains(w.found.Text, "P panics: boom") {
		t.Errorf("found %v, want the panic", w.found)
	}
}
