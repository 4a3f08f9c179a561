package program_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/program"
)

// experiment finds a value for the first of its rows.
func experiment(name string, value float64, err error) lab.Experiment {
	rows := []goal.Row{goal.AtLeast(name+", first", "x", 2, 3), goal.AtLeast(name+", second", "x", 2, 3)}
	return lab.Experiment{Name: name, Rows: rows, Run: func(_ context.Context, l *lab.Lab) ([]goal.Finding, error) {
		l.Point("throughput", name, 8, value)
		return []goal.Finding{{Row: rows[0].Name, Value: value}}, err
	}}
}

// TestOneFailureKeepsNoOtherFromBeingMeasured, and is told in its row.
func TestOneFailureKeepsNoOtherFromBeingMeasured(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	all := []lab.Experiment{experiment("bad", 1, errors.New("no server")), experiment("good", 2, nil)}
	var out bytes.Buffer
	missed, err := program.Run(t.Context(), program.Options{Quick: true, Dir: dir}, all, &out)
	if err != nil {
		t.Fatal(err)
	}
	if missed != 3 {
		t.Errorf("missed = %d, want 3: one value, and two that are not there", missed)
	}
	text, err := os.ReadFile(filepath.Join(dir, "latest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Name, Detail string
		Value        *float64
		Met          bool
	}
	if err := json.Unmarshal(text, &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 4 || *lines[0].Value != 1 || lines[0].Met || lines[1].Detail != "not measured: no server" ||
		!lines[2].Met || lines[3].Detail != "not measured: nothing was found" {
		t.Errorf("latest.json holds %s", text)
	}
	for _, name := range []string{"latest.md", "throughput.svg"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if leftOver, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(leftOver) > 0 {
		t.Errorf("left: %v", leftOver)
	}
}

// TestOnlyWhatGivesTheRowIsMeasured, and nothing is written without a place.
func TestOnlyWhatGivesTheRowIsMeasured(t *testing.T) {
	t.Parallel()
	all := []lab.Experiment{experiment("one", 2, nil), experiment("two", 2, nil)}
	var out bytes.Buffer
	o := program.Options{Quick: true, Row: regexp.MustCompile("^two, second$")}
	if _, err := program.Run(t.Context(), o, all, &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "one, first") || !strings.Contains(out.String(), "two, second") {
		t.Errorf("it measured\n%s", &out)
	}
	o.Row = regexp.MustCompile("three")
	if _, err := program.Run(t.Context(), o, all, &out); err == nil {
		t.Error("what nothing gives was measured")
	}
}

// TestWhatWasBrokenOffWritesNothing: half of a table would look like all of it.
func TestWhatWasBrokenOffWritesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	breaks := lab.Experiment{Name: "breaks", Run: func(context.Context, *lab.Lab) ([]goal.Finding, error) {
		cancel()
		return nil, nil
	}}
	dir := filepath.Join(t.TempDir(), "results")
	_, err := program.Run(ctx, program.Options{Quick: true, Dir: dir}, []lab.Experiment{breaks, experiment("next", 2, nil)}, t.Output())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it wrote results")
	}
}

// TestWhatAnExperimentOpensIsClosed when it is over, the last first.
func TestWhatAnExperimentOpensIsClosed(t *testing.T) {
	t.Parallel()
	var closed []string
	opens := lab.Experiment{Name: "opens", Run: func(_ context.Context, l *lab.Lab) ([]goal.Finding, error) {
		for _, name := range []string{"first", "second"} {
			l.Closing(func() error { closed = append(closed, name); return nil })
		}
		return nil, nil
	}}
	looks := lab.Experiment{Name: "looks", Run: func(context.Context, *lab.Lab) ([]goal.Finding, error) {
		if got := strings.Join(closed, " "); got != "second first" {
			t.Errorf("closed: %q, want second first", got)
		}
		return nil, nil
	}}
	if _, err := program.Run(t.Context(), program.Options{Quick: true}, []lab.Experiment{opens, looks}, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsSpreadIsMeasuredInEachRound: before all others, among them and after them.
// What it finds the last time counts, in the row's own place.
func TestWhatIsSpreadIsMeasuredInEachRound(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(e lab.Experiment) lab.Experiment {
		run := e.Run
		e.Run = func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
			order = append(order, e.Name)
			return run(ctx, l)
		}
		return e
	}
	spread := experiment("spread", 0, nil)
	spread.Spread = true
	spread.Run = func(context.Context, *lab.Lab) ([]goal.Finding, error) {
		return []goal.Finding{{Row: "spread, first", Value: float64(len(order))}}, nil
	}
	dir := filepath.Join(t.TempDir(), "results")
	all := []lab.Experiment{note(experiment("one", 2, nil)), note(spread), note(experiment("two", 2, nil))}
	if _, err := program.Run(t.Context(), program.Options{Quick: true, Dir: dir}, all, t.Output()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "spread one spread two spread" {
		t.Errorf("measured %q", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "latest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Name  string
		Value *float64
	}
	if err := json.Unmarshal(text, &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 6 || lines[2].Name != "spread, first" || *lines[2].Value != 5 {
		t.Errorf("latest.json holds %s", text)
	}
}

// TestProfilesAreWritten where they are asked for.
func TestProfilesAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	o := program.Options{Quick: true, Profile: dir}
	if _, err := program.Run(t.Context(), o, []lab.Experiment{experiment("one", 2, nil)}, t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpu", "allocs", "mutex", "block"} {
		info, err := os.Stat(filepath.Join(dir, name+".prof"))
		if err != nil || info.Size() == 0 {
			t.Errorf("%s.prof: %v, %v", name, info, err)
		}
	}
}
