//go:build unix

package server_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/realtest/chromium"
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

// TestPagesShowAGroupOnceAfterAKill kills the server between the COMMIT and the answer of a
// creation that a desktop's page has sent. After the restart there is one group, and the pages
// of both members, one of them on a phone, show it once without a reload.
func TestPagesShowAGroupOnceAfterAKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for _, mode := range []string{inline, leased} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			desktop, phone, f := browse(t), browse(t), newFiles(t, mode)
			s := start(t, f.args(shortLease)...)
			ada, grace := desktop.signIn(t, s.base, "Ada"), phone.signIn(t, s.base, "Grace")
			phone.phone(t)
			for _, b := range []*browser{desktop, phone} {
				b.Do(t, chromedp.Evaluate[chromedp.Void](`window.notReloaded = true`))
			}
			s.arm(t, "kill", afterCommit)
			desktop.create(t, "Survivors", "Grace")
			s.killedAt(t, afterCommit)
			key := desktop.attempts(t)[0].Key
			s = start(t, append(f.args(shortLease), "-addr", strings.TrimPrefix(s.base, "http://"))...)
			desktop.untilOpen(t, "Survivors")
			desktop.untilNoAttempt(t)
			phone.untilGroups(t, "Survivors")
			phone.Do(t, chromedp.Click(css("#groups a")))
			for _, b := range []*browser{desktop, phone} {
				b.untilMessage(t, "Welcome, Ada!")
				b.untilMessage(t, "Welcome, Grace!")
				b.untilGroups(t, "Survivors")
				if !chromium.Read[bool](t, b.Tab, `window.notReloaded === true`) {
					t.Error("the page was loaded again")
				}
			}
			desktop.Shoot(t, "survivors-"+mode)
			phone.Shoot(t, "survivors-phone-"+mode)
			phone.wantNarrow(t)
			if n := creations(t, f.openDomain(t), ada, key); n != 1 {
				t.Errorf("%d creations, want 1", n)
			}
			for _, u := range []user{ada, grace} {
				if n := len(s.groupsOf(t, u)); n != 1 {
					t.Errorf("%s has %d groups, want 1", u.Name, n)
				}
			}
		})
	}
}
