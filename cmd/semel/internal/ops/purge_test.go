package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/cmd/semel/internal/ops"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// purgedOutput is the output of purge --json.
type purgedOutput struct {
	DryRun  bool `json:"dry_run"`
	Records int
	Counts  []struct {
		Operation, State string
		Records          int
	}
}

func (s *testDB) purge(t *testing.T, args ...string) (p purgedOutput) {
	t.Helper()
	out := s.must(t, append([]string{"purge", "--json"}, args...)...)
	check.Require(t, json.Unmarshal([]byte(out), &p), "purge --json")
	return p
}

// TestPurgeMatchesDryRun: purge removes the records that the dry run counted,
// and no others.
func TestPurgeMatchesDryRun(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, s *testDB) {
		for i, state := range store.States() {
			for j := range 7 {
				key := fmt.Sprintf("%v-%d", state, j)
				if s.put(t, store.Record{Token: token(state, 1), Key: key + "-kept", Expire: keptFor(state)}); j <= i && !state.Unfinished() {
					s.put(t, store.Record{Token: token(state, 1), Key: key, Expire: -time.Hour})
				}
			}
		}
		const want = 1 + 4 + 5 // Pending, Succeeded, Failed
		dry := s.purge(t, "--dry-run")
		if !dry.DryRun || dry.Records != want || len(dry.Counts) != 3 {
			t.Errorf("purge --dry-run = %+v, want %d records in 3 states", dry, want)
		}
		if limited := s.purge(t, "--dry-run", "--limit", "3"); limited.Records != 3 {
			t.Errorf("purge --dry-run --limit 3 = %+v, want 3", limited)
		}
		if first := s.purge(t, "--limit", "3"); first.Records != 3 || first.DryRun {
			t.Errorf("purge --limit 3 = %+v, want 3", first)
		}
		if rest := s.purge(t); rest.Records != dry.Records-3 {
			t.Errorf("purge = %+v, want the other %d", rest, dry.Records-3)
		}
		if none := s.purge(t, "--dry-run"); none.Records != 0 || len(none.Counts) != 0 {
			t.Errorf("purge --dry-run afterwards = %+v, want none", none)
		}
		left := strings.Count(s.must(t, "ls", "--json"), "\n")
		if want := 7 * len(store.States()); left != want {
			t.Errorf("%d records are left, want %d", left, want)
		}
		s.runOn(t, "purge", "--limit", "-1").want(t, exit.Usage, "--limit")
	})
}

// keptFor returns the time until the expiry of a record in state s that must
// stay.
func keptFor(s store.State) time.Duration {
	if s.Unfinished() {
		return 0
	}
	return time.Hour
}

// largeStore is a store with many expired records.
type largeStore struct {
	store.Store

	left int
	err  error // returned when half of them are removed
}

func (h *largeStore) Purge(_ context.Context, limit int) (int, error) {
	if h.err != nil && h.left <= ops.PurgeReportEvery {
		return 0, h.err
	}
	n := min(limit, h.left)
	h.left -= n
	return n, nil
}

// TestPurgeReportsProgress while it runs, and prints the result when it ends
// early.
func TestPurgeReportsProgress(t *testing.T) {
	t.Parallel()
	var progress bytes.Buffer
	gone, err := ops.Remove(t.Context(), &largeStore{left: 2*ops.PurgeReportEvery + 1}, 0, &progress)
	if lines := strings.Count(progress.String(), "going on\n"); gone != 2*ops.PurgeReportEvery+1 || err != nil || lines != 2 {
		t.Errorf("removed %d, %v, with %d progress lines, want all and two", gone, err, lines)
	}
	if gone, err := ops.Remove(t.Context(), &largeStore{left: 2 * ops.PurgeReportEvery, err: errDown}, 0, &progress); gone != ops.PurgeReportEvery || err == nil {
		t.Errorf("removed %d, %v, want half of them and the error", gone, err)
	}
}
