package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// TestKeysWithATime: scope and key find such a record, although the program
// does not know the operation.
func TestKeysWithATime(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	everyDatabase(t, func(t *testing.T, s *testDB) {
		for name, of := range map[string]struct {
			time func(string) (time.Time, bool)
			key  string
		}{
			"uuid":  {semel.UUIDv7Time, uuid.Must(uuid.NewV7()).String()},
			"ulid":  {semel.ULIDTime, "01KWXYZ0000123456789ABCDEF"},
			"plain": {func(string) (time.Time, bool) { return time.Time{}, true }, uuid.Must(uuid.NewV7()).String()},
		} {
			refund := semel.Define("refund_"+name, semel.OperationOptions[string]{KeyTime: of.time, Retention: 10 * year, Skew: 10 * year})
			call := refund.Call(semel.Shared(), of.key, "in")
			id := s.makeInDoubt(t, call)
			named := []string{"--operation", refund.Name(), "--shared", "--key", of.key}
			if out := s.must(t, append([]string{"show"}, named...)...); !strings.Contains(out, id) {
				t.Errorf("%s: show wrote %q, want %s", name, out, id)
			}
			s.must(t, append([]string{"resolve", "--to", "failed", "--reason", "looked"}, named...)...)
			s.wantNote(t, call, "ann", "looked", store.Failed)
		}
	})
}
