package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageSendsFiftyDuplicates is the first thing a visitor tries.
func TestPageSendsFiftyDuplicates(t *testing.T) {
	t.Parallel()
	b := browse(t)
	f := newFiles(t, inline)
	s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	other := s.signIn(t, "Grace")
	b.Do(t, chromedp.Navigate(s.base), chromedp.WaitVisible(css("#sign-in-name")))
	b.Shoot(t, "sign-in")
	u := b.signIn(t, s.base, "Ada")
	b.Shoot(t, "empty")
	b.storm(t, "Engine room", "1")
	b.Until(t, allAnswered)
	b.Until(t, `document.getElementById("talk-title").textContent === "Engine room"`)
	b.Shoot(t, "answered")
	b.Do(t, chromedp.EmulateViewport(390, 844))
	if wide := chromium.Read[bool](t, b.Tab, `document.documentElement.scrollWidth > 390`); wide {
		t.Error("the page is wider than a phone")
	}
	b.Shoot(t, "phone")
	if diff := cmp.Diff(map[string]int{"created": 1, "replayed": 49}, b.tiles(t)); diff != "" {
		t.Errorf("tiles (-want +got):\n%s", diff)
	}
	if got := [3]string{b.count(t, "group-count"), b.count(t, "group-count-before"), b.count(t, "group-count-answers")}; got != [3]string{"1", "0", "1"} {
		t.Errorf("groups, before, in the answers: %v, want 1, 0, 1", got)
	}
	if n := len(s.groupsOf(t, u)); n != 1 {
		t.Errorf("%d groups on the server, want 1", n)
	}
	if n := len(s.groupsOf(t, other)); n != 1 {
		t.Errorf("the member has %d groups, want 1", n)
	}
	b.wantKeyGone(t)
}

// TestPageShowsAGroup tests the rest of the page.
func TestPageShowsAGroup(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	grace, alan := s.signIn(t, "Grace"), s.signIn(t, "Alan")
	b.signIn(t, s.base, "Ada")
	b.fill(t, `Readers <b>& "writers"`, "1")
	b.Do(t, chromedp.Click(css("#create-once")))
	b.Until(t, `document.querySelectorAll("#groups li").length === 1`)
	b.Until(t, `document.getElementById("members").innerText.includes("Grace")`)
	b.Do(t, chromedp.SendKeys(css("#members-ids"), "2"), chromedp.Click(css("#members-add")))
	b.Until(t, `document.getElementById("members").innerText.includes("Alan")`)
	b.Until(t, `document.querySelectorAll("#messages li.server").length === 3`) // a welcome for each member
	b.Do(t, chromedp.SendKeys(css("#message-text"), "Hello there"), chromedp.Click(css("#message-send")))
	b.Until(t, `document.querySelectorAll("#messages li").length === 4`)

	group := s.groupsOf(t, alan)[0]["id"].(string)
	s.send(t, request{
		method: "POST", path: "/v1/groups/" + group + "/messages", as: grace, key: "k",
		body: `{"text":"Good morning! <script>alert(1)</script>"}`,
	}).want(t, http.StatusCreated, "")
	b.Until(t, `document.querySelectorAll("#messages li").length === 5`)
	if text := b.Text(); !strings.Contains(text, "<script>alert(1)</script>") || !strings.Contains(text, `Readers <b>& "writers"`) {
		t.Errorf("text is not shown as it is:\n%s", text)
	}
	b.Shoot(t, "talk")

	b.fill(t, "Nobody's", "77")
	b.Do(t, chromedp.Click(css("#create-once")))
	b.Until(t, `document.getElementById("create-status").textContent.includes("There is no user 77.")`)
	b.wantKeyGone(t)
	b.Shoot(t, "refused")
	b.Do(t, chromedp.Click(css("#sign-out")), chromedp.WaitVisible(css("#sign-in-name")))
}

// TestPageKeepsItsKey reloads the page while its creation is held: the page
// continues with the same key.
func TestPageKeepsItsKey(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	f := newFiles(t, leased)
	s := serveLocal(t, hold.at(leased), f.args(time.Minute)...)
	u := b.signIn(t, s.base, "Ada")
	hold.armed.Store(true)
	b.storm(t, "Night shift", "")
	hold.await(t)
	b.Until(t, someWaiting)
	b.Shoot(t, "waiting")
	kept := b.kept(t)
	b.Do(t, chromedp.Reload(), chromedp.WaitVisible(css("#create-form")))
	if again := b.kept(t); again != kept || kept == "" {
		t.Errorf("the key was %q, after a reload %q", kept, again)
	}
	close(hold.open)
	b.Until(t, allAnswered)
	got := b.tiles(t)
	if got["created"]+got["replayed"] != 50 || got["created"] > 1 {
		t.Errorf("tiles %v, want 50 created or replayed, at most one created", got)
	}
	if n := creations(t, f.openDomain(t), u, kept); n != 1 {
		t.Errorf("%d creations, want 1", n)
	}
	b.wantKeyGone(t)
}

// kept returns the key that the page has stored.
func (b *browser) kept(t *testing.T) string {
	t.Helper()
	var attempt struct{ Key string }
	text := chromium.Read[string](t, b.Tab, `localStorage.getItem("semel-chat.creation") ?? "{}"`)
	if err := json.Unmarshal([]byte(text), &attempt); err != nil {
		t.Fatal(err)
	}
	return attempt.Key
}

// TestPageAddsOneUser clicks twice on the button that adds a user; then the user signs out
// and in again.
func TestPageAddsOneUser(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	b.Do(t,
		chromedp.Navigate(s.base), chromedp.WaitVisible(css("#sign-in-name")),
		chromedp.SendKeys(css("#sign-in-name"), "Dora"), chromedp.SendKeys(css("#sign-in-password"), password),
		chromedp.DoubleClick(css("#sign-up-button")), chromedp.WaitVisible(css("#create-form")),
	)
	b.fill(t, "Crew", "")
	b.Do(t, chromedp.Click(css("#create-once")))
	b.Until(t, `document.querySelectorAll("#groups li").length === 1`)
	b.Do(t, chromedp.Click(css("#sign-out")), chromedp.WaitVisible(css("#sign-in-name")))
	b.Do(t,
		chromedp.SendKeys(css("#sign-in-name"), "dora"), chromedp.SendKeys(css("#sign-in-password"), password),
		chromedp.Click(css("#sign-in-button")), chromedp.WaitVisible(css("#create-form")),
	)
	b.Until(t, `document.querySelectorAll("#groups li").length === 1`)
	dora := s.logIn(t, "Dora", "test")
	if n := len(s.groupsOf(t, dora)); n != 1 || dora.ID != 1 {
		t.Errorf("user %d has %d groups, want user 1 with one", dora.ID, n)
	}
	sessions := s.send(t, request{method: "GET", path: "/v1/sessions", as: dora}).value(t)["sessions"].([]any)
	if len(sessions) != 2 { // the page's second one, and this
		t.Errorf("%d sessions, want 2: the first one was ended", len(sessions))
	}
}
