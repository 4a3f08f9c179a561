//go:build unix

package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageSurvivesARestart kills the server at two points of a creation and starts
// it again. The page retries by itself.
func TestPageSurvivesARestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	tests := []struct {
		mode, point string
		want        map[string]int
	}{
		{leased, inHandler, map[string]int{"created": 1, "replayed": 49}},
		{inline, afterCommit, map[string]int{"replayed": 50}},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			b, f := browse(t), newFiles(t, test.mode)
			s := start(t, f.args(shortLease)...)
			u := b.signIn(t, s.base, "Ada")
			s.arm(t, "kill", test.point)
			b.storm(t, s.base, "Phoenix")
			s.killedAt(t, test.point)
			b.Until(t, noServer)
			key := b.attempts(t)[0].Key
			b.Shoot(t, "away-"+test.mode)
			s = start(t, append(f.args(shortLease), "-addr", strings.TrimPrefix(s.base, "http://"))...)
			b.Until(t, allAnswered)
			if diff := cmp.Diff(test.want, b.tiles(t)); diff != "" {
				t.Errorf("tiles (-want +got):\n%s", diff)
			}
			if n := creations(t, f.openDomain(t), u, key); n != 1 {
				t.Errorf("%d creations, want 1", n)
			}
			if n := len(s.groupsOf(t, u)); n != 1 {
				t.Errorf("%d groups, want 1", n)
			}
			b.untilNoAttempt(t)
		})
	}
}
