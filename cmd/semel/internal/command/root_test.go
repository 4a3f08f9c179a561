package command_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
)

// run runs the program and returns its exit code and output.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command.Main(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, out, _ := run(t, "version")
	if code != exit.OK || !strings.HasPrefix(out, "semel ") || !strings.Contains(out, "go1.") {
		t.Errorf("semel version: code %d, wrote %q", code, out)
	}
	if code, flag, errs := run(t, "--version"); code != exit.OK || flag != out || errs != "" {
		t.Errorf("semel --version: code %d, wrote %q and %q, want the same as semel version: %q", code, flag, errs, out)
	}
	code, out, _ = run(t, "version", "--json")
	var v struct{ Version, Go string }
	if err := json.Unmarshal([]byte(out), &v); code != exit.OK || err != nil || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("semel version --json: code %d, %v, wrote %q", code, err, out)
	}
}

func TestInvalidCommandLinesAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nonsense"},
		{"version", "now"},
		{"version", "--nonsense"},
		{"--json=perhaps"},
	} {
		code, out, errs := run(t, args...)
		if code != exit.Usage || out != "" || !strings.HasPrefix(errs, "semel: ") || !strings.Contains(errs, "--help") {
			t.Errorf("semel %v: code %d, wrote %q, printed %q", args, code, out, errs)
		}
	}
}

// TestUnknownCommandBeforeFlags: a mistyped command is reported even if flags
// follow it.
func TestUnknownCommandBeforeFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"statz", "--db", "x"}, {"journal", "lst", "--db", "x"}, {"journal", "lst"}} {
		code, out, errs := run(t, args...)
		if code != exit.Usage || out != "" || !strings.Contains(errs, "unknown command \"") {
			t.Errorf("semel %v: code %d, wrote %q and %q; want an unknown command", args, code, out, errs)
		}
	}
	if _, _, errs := run(t, "--nonsense", "stats"); !strings.Contains(errs, "unknown flag: --nonsense") {
		t.Errorf("semel --nonsense stats: %q, want an unknown flag", errs)
	}
}

func TestHelpNamesTheExitCodes(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t)
	if code != exit.OK || errs != "" || !strings.Contains(out, "Exit codes: 0") {
		t.Errorf("semel: code %d, wrote %q, printed %q", code, out, errs)
	}
}
