//go:build unix && !race

package server_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageSurvivesARestart kills the server at two points of a creation and starts
// it again. The page retries by itself.
func TestPageSurvivesARestart(t *testing.T) {
	t.Parallel()
	fullOnly(t)
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
			s := start(t, append(f.args(shortLease), "-addr", realtest.FreeAddr(t))...)
			u := b.signIn(t, s.base, "Ada")
			s.arm(t, "kill", test.point)
			b.storm(t, s.base, "Phoenix")
			s.killedAt(t, test.point)
			b.Until(t, noServer)
			key := b.attempts(t)[0].Key
			b.Shoot(t, "away-"+test.mode)
			s = start(t, append(f.args(shortLease), "-addr", strings.TrimPrefix(s.base, "http://"))...)
			b.Until(t, allAnswered)
			check.NoDiff(t, cmp.Diff(test.want, b.tiles(t)), "tiles")
			check.Equal(t, creations(t, f.openDomain(t), u, key), 1, "creations")
			check.Equal(t, len(s.groupsOf(t, u)), 1, "groups")
			b.untilNoAttempt(t)
		})
	}
}

// TestPagesShowAGroupOnceAfterAKill kills the server between the COMMIT and the answer of a
// creation that a desktop's page has sent. After the restart there is one group, and the pages
// of both members, one of them on a phone, show it once without a reload.
func TestPagesShowAGroupOnceAfterAKill(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	for _, mode := range []string{inline, leased} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			desktop, phone, f := browse(t), browse(t), newFiles(t, mode)
			s := start(t, append(f.args(shortLease), "-addr", realtest.FreeAddr(t))...)
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
			phone.openFirst(t)
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
			check.Equal(t, creations(t, f.openDomain(t), ada, key), 1, "creations")
			for _, u := range []user{ada, grace} {
				check.Equal(t, len(s.groupsOf(t, u)), 1, "groups of %s", u.Name)
			}
		})
	}
}
