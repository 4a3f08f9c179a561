package ops_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/errtype"
)

// TestBuiltProgram: its output, its streams and its exit codes.
func TestBuiltProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "semel")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/semelgo/semel/cmd/semel").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	s := newSQLite(t)
	id := s.makeInDoubt(t, callOf("k"))
	for _, tt := range []struct {
		args []string
		code int
		out  string
		errs string
	}{
		{[]string{"ls", "--state", "indoubt"}, exit.OK, id, ""},
		{[]string{"show", id}, exit.OK, "InDoubt", ""},
		{[]string{"resolve", id, "--to", "succeeded", "--reason", "seen in the bank's list", "--result", "-"}, exit.OK, "Succeeded", ""},
		{[]string{"resolve", id, "--to", "failed", "--reason", "r"}, exit.Refused, "", "not InDoubt"},
		{[]string{"show", strings.Repeat("0", 32)}, exit.NotFound, "", "there is no record"},
		{[]string{"show"}, exit.Usage, "", "record's ID"},
		{[]string{"show", id, "--db", "postgres://127.0.0.1:1/d"}, exit.Unavailable, "", "connect"},
		{[]string{"journal", "ls", "."}, exit.Failed, "", "directory"},
		{[]string{"stats", "--json"}, exit.OK, `"state": "Succeeded"`, ""},
	} {
		c := exec.CommandContext(t.Context(), program, tt.args...)
		c.Env = append(os.Environ(), "SEMEL_DB="+s.db)
		c.Stdin = strings.NewReader(`"charged"`)
		var out, errs strings.Builder
		c.Stdout, c.Stderr = &out, &errs
		code := 0
		if err := c.Run(); err != nil {
			ended, ok := errtype.Find[*exec.ExitError](err)
			if !ok {
				t.Fatal(err)
			}
			code = ended.ExitCode()
		}
		silent := (tt.errs == "") == (errs.Len() == 0) && (tt.out == "") == (out.Len() == 0)
		if code != tt.code || !silent || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
			t.Errorf("semel %v: code %d, wrote %q, printed %q; want code %d, %q, %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out, tt.errs)
		}
	}
	if v, replayed, err := s.do(t, callOf("k"), "", errDown); v != "charged" || !replayed || err != nil {
		t.Errorf("retry: %q, %v, %v, want the operator's result", v, replayed, err)
	}
}
