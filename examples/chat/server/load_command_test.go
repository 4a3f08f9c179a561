package server_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/load"
	"github.com/semelgo/semel/examples/chat/server"
)

// TestLoadCommand: the command prints the times to delivery and verifies what is stored. Its exit
// code says whether all went well.
func TestLoadCommand(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	run := func(ctx context.Context, code int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs strings.Builder
		if got := load.Main(ctx, args, &out, &errs); got != code {
			t.Errorf("chat load %v ended with %d, want %d: %s", args, got, code, errs.String())
		}
		return out.String(), errs.String()
	}
	out, _ := run(t.Context(), 0, "-servers", s.base, "-clients", "8", "-messages", "40", "-rate", "200", "-drop", "100ms")
	for _, line := range []string{`messages +40 sent, 4\d stored`, `deliveries +[1-9]`, `send to push +p50 \d.*, p99 \d`, `connections +[1-9]\d* lost or dropped`} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("the report is %q, want a line %s", out, line)
		}
	}
	if _, text := run(t.Context(), 2, "-servers", s.base, "-clients", "none"); !strings.Contains(text, "-clients") {
		t.Errorf("an invalid flag: %q", text)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, text := run(interrupted, 1, "-servers", s.base); text == "" {
		t.Error("a run that was interrupted says nothing")
	}
}
