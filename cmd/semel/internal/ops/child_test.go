package ops_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
)

// TestShowChildKeys: an operator finds the key that the provider received, without seeing
// the callers' data.
func TestShowChildKeys(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	op := semel.Define("pay", semel.OperationOptions[string]{Policy: semel.Hold()})
	call, sent := op.Call(semel.ScopeOf("ann"), "order 7", "in"), ""
	_, _, err := semel.Do(t.Context(), s.engine, call, func(ctx context.Context) (string, error) {
		sent = check.Must(semel.ChildKey(ctx, "charge"))(t)
		return "", context.DeadlineExceeded
	})
	check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the call")
	id := call.ID().String()
	check.Equal(t, strings.Contains(s.must(t, "show", id), sent), false, "show has the key without --child")
	var shown struct {
		ChildKeys map[string]string `json:"child_keys"`
	}
	check.Require(t, json.Unmarshal([]byte(s.must(t, "show", id, "--child", "charge", "--child", "mail", "--json")), &shown), "show --json")
	check.Equal(t, len(shown.ChildKeys), 2, "child keys")
	check.Equal(t, shown.ChildKeys["charge"], sent, "the key of the charge")
	line := ""
	for l := range strings.Lines(s.must(t, "show", id, "--child", "charge")) {
		if strings.HasPrefix(l, "child charge ") {
			line = strings.TrimSpace(l)
		}
	}
	check.Equal(t, strings.HasSuffix(line, " "+sent), true, "the line of the child key is %q", line)
}
