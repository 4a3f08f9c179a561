//go:build !race

package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageSendsFiftyDuplicates requests one group 50 times.
func TestPageSendsFiftyDuplicates(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	u := b.signIn(t, s.base, "Ada")
	if chromium.Read[bool](t, b.Tab, `document.querySelector(".tile, #tiles, #queue") !== null`) {
		t.Error("the experiment is on the page of the chat")
	}
	b.storm(t, s.base, "Engine room")
	b.Until(t, `document.getElementById("kill-title").checkVisibility()`) // how to kill and restart the server
	b.Until(t, allAnswered)
	b.Shoot(t, "retries")
	b.phone(t)
	b.wantNarrow(t)
	b.Shoot(t, "retries-phone")
	check.NoDiff(t, cmp.Diff(map[string]int{"created": 1, "replayed": 49}, b.tiles(t)), "tiles")
	check.Equal(t, [3]string{b.count(t, "group-count"), b.count(t, "group-count-before"), b.count(t, "group-count-answers")}, [3]string{"1", "0", "1"}, "groups, before, in the answers")
	check.Equal(t, len(s.groupsOf(t, u)), 1, "groups on the server")
	b.untilNoAttempt(t)
}

// TestPageKeepsItsKey reloads the page while its creation is held: the page continues with
// the same key.
func TestPageKeepsItsKey(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	f := newFiles(t, leased)
	s := serveLocal(t, hold.at(leased), f.args(time.Minute)...)
	u := b.signIn(t, s.base, "Ada")
	hold.armed.Store(true)
	b.storm(t, s.base, "Night shift")
	<-hold.arrived
	b.Until(t, someWaiting)
	b.Shoot(t, "retries-waiting")
	before := b.attempts(t)
	b.Do(t, chromedp.Reload(), chromedp.WaitVisible(css("#create-50")))
	if after := b.attempts(t); len(before) != 1 || !slices.Equal(before, after) {
		t.Errorf("the attempts were %v, after a reload %v", before, after)
	}
	close(hold.open)
	b.Until(t, allAnswered)
	got := b.tiles(t)
	if got["created"]+got["replayed"] != 50 || got["created"] > 1 {
		t.Errorf("tiles %v, want 50 created or replayed, at most one created", got)
	}
	check.Equal(t, creations(t, f.openDomain(t), u, before[0].Key), 1, "creations")
	b.untilNoAttempt(t)
}

// storm opens the page of retries and requests one group 50 times.
func (b *browser) storm(t *testing.T, base, name string) {
	t.Helper()
	b.Do(t, chromedp.Navigate(base+"/retries"), chromedp.WaitVisible(css("#create-50")),
		chromedp.SetValue(css("#storm-name"), name), chromedp.Click(css("#create-50")))
}

// tiles counts the tiles of the panel by state.
func (b *browser) tiles(t *testing.T) map[string]int {
	t.Helper()
	return chromium.Read[map[string]int](t, b.Tab, `[...document.querySelectorAll(".tile")]
		.reduce((n, tile) => ({...n, [tile.dataset.state]: (n[tile.dataset.state] ?? 0) + 1}), {})`)
}

// count reads a number below the panel.
func (b *browser) count(t *testing.T, id string) string {
	t.Helper()
	return strings.TrimSpace(chromium.Read[string](t, b.Tab, `document.getElementById("`+id+`").textContent`))
}

// TestPageShowsTheQueue holds a welcome and checks that the page counts it, and that
// the page updates by itself when the welcome goes on.
func TestPageShowsTheQueue(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	to := server.Hooks{Welcome: func(next server.WelcomeFunc) server.WelcomeFunc {
		return func(ctx context.Context, tx chatdb.Tx, in server.Welcome) (chatdb.Message, error) {
			hold.pass()
			return next(ctx, tx, in)
		}
	}}
	rabbit := newRabbit(t)
	s := serveLocal(t, to, rabbit.args(newPostgres(t, inline).args(time.Minute))...)
	ann := b.signIn(t, s.base, "Ann")
	b.Do(t, chromedp.Navigate(s.base+"/retries"))
	b.wantQueue(t, welcomeRow, 0, 0, 0)
	hold.armed.Store(true)
	group := s.newGroup(t, ann, "crew")
	<-hold.arrived
	b.wantQueue(t, welcomeRow, 0, 1, 0)
	b.Shoot(t, "queue-held")
	close(hold.open)
	b.wantQueue(t, welcomeRow, 0, 0, 1)
	rabbit.publish(t, outside("1", group, ann.ID, "Your invoice is paid."))
	b.wantQueue(t, importRow, 0, 0, 1)
	rabbit.publish(t, outside("1", group, ann.ID, "Your invoice is paid."))
	b.Until(t, `document.getElementById("queue-import").textContent.includes("deliveries 2, written 1, duplicates 1,")`)
	b.phone(t)
	b.wantNarrow(t)
	b.Do(t, chromedp.Navigate(s.base+"/#/g/"+group))
	b.Until(t, `document.querySelectorAll("#messages li.server").length === 1`)
	b.Until(t, `document.querySelectorAll("#messages li.mine").length === 1`)
}

// Rows of the page's table.
const (
	welcomeRow = "Welcomes"
	importRow  = "Imported messages"
)

// wantQueue waits until a row of the page's table shows these numbers.
func (b *browser) wantQueue(t *testing.T, row string, waiting, running, done int) {
	t.Helper()
	b.Until(t, fmt.Sprintf(`[...document.querySelectorAll("#queue tbody tr")]
		.some((tr) => [...tr.cells].map((cell) => cell.textContent).join() === "%s,%d,%d,%d,0,0")`, row, waiting, running, done))
}
