//go:build !race

package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// Expressions that the tests wait for.
const (
	allAnswered = `document.getElementById("storm-status").textContent === "All have their answer."`
	someWaiting = `document.querySelectorAll('.tile[data-state="progress"]').length > 0`
	noServer    = `document.querySelectorAll('.tile[data-state="away"]').length > 0`
)

// browser is one tab of a headless browser.
type browser struct{ *chromium.Tab }

func browse(t *testing.T) *browser {
	t.Helper()
	return &browser{chromium.Open(t)}
}

// servePage opens a browser, and runs a server with an SQLite database.
func servePage(t *testing.T, to server.Hooks) (*browser, *localServer) {
	t.Helper()
	return browse(t), serveLocal(t, to, newFiles(t, inline).args(time.Minute)...)
}

// credentials fills the form and clicks on a button, #sign-up-button or #sign-in-button.
func (b *browser) credentials(t *testing.T, name, button string) {
	t.Helper()
	b.Do(t, chromedp.WaitVisible(css("#sign-in-name")), chromedp.SetValue(css("#sign-in-name"), name),
		chromedp.SetValue(css("#sign-in-password"), password), chromedp.Click(css(button)))
}

// signIn opens a server's page and signs in as a new user.
func (b *browser) signIn(t *testing.T, base, name string) user {
	t.Helper()
	b.Do(t, chromedp.Navigate(base))
	b.credentials(t, name, "#sign-up-button")
	b.untilConnected(t)
	return b.user(t)
}

// untilConnected waits until the page receives pushes. From then on it loads the list of groups only
// when it must, and no notice that there is no connection moves what a test is about to click.
func (b *browser) untilConnected(t *testing.T) {
	t.Helper()
	b.Do(t, chromedp.WaitVisible(css("#new-group")), chromedp.Evaluate[chromedp.Void](`import("/static/live.js").then((page) => new Promise((done) => {
		const look = () => page.state === "open" && done();
		page.live.addEventListener("state", look);
		look();
	}))`, chromedp.EvalAwaitPromise))
}

// logIn signs in on the page that is open, as a user that exists.
func (b *browser) logIn(t *testing.T, name string) {
	t.Helper()
	b.credentials(t, name, "#sign-in-button")
	b.untilConnected(t)
}

// user is the user that is signed in.
func (b *browser) user(t *testing.T) user {
	t.Helper()
	var u user
	text := chromium.Read[string](t, b.Tab, `localStorage.getItem("semel-chat.session")`)
	check.Require(t, json.Unmarshal([]byte(text), &u))
	return u
}

// phone makes the page as small as that of a phone.
func (b *browser) phone(t *testing.T) {
	t.Helper()
	b.Do(t, chromedp.EmulateViewport(390, 844))
}

// wantNarrow checks that the page is not wider than a phone.
func (b *browser) wantNarrow(t *testing.T) {
	t.Helper()
	if chromium.Read[bool](t, b.Tab, `document.documentElement.scrollWidth > 390`) {
		t.Error("the page is wider than a phone")
	}
}

// create fills and sends the form of a new group. Members are names with commas.
func (b *browser) create(t *testing.T, name, members string) {
	t.Helper()
	b.Do(t, chromedp.Click(css("#new-group")), chromedp.WaitVisible(css("#create-form")), chromedp.SendKeys(css("#create-name"), name))
	if members != "" {
		b.Do(t, chromedp.SendKeys(css("#create-members"), members))
	}
	b.Do(t, chromedp.Click(css("#create-once")))
}

// untilOpen waits until a conversation is open.
func (b *browser) untilOpen(t *testing.T, name string) {
	t.Helper()
	b.Until(t, fmt.Sprintf(`document.getElementById("talk-title").textContent === %q`, name))
}

// write types a message and sends it.
func (b *browser) write(t *testing.T, text string) {
	t.Helper()
	b.Do(t, chromedp.SendKeys(css("#message-text"), text), chromedp.Click(css("#message-send")))
}

// untilMessage waits until the conversation shows a message with this text.
func (b *browser) untilMessage(t *testing.T, text string) {
	t.Helper()
	b.Until(t, fmt.Sprintf(`[...document.querySelectorAll("#messages li:not([data-state]) p")].some((p) => p.textContent === %q)`, text))
}

// untilGroups waits until the list has these groups, in any order.
func (b *browser) untilGroups(t *testing.T, names ...string) {
	t.Helper()
	slices.Sort(names)
	b.Until(t, fmt.Sprintf(`[...document.querySelectorAll("#groups .name")].map((name) => name.textContent).sort().join() === %q`,
		strings.Join(names, ",")))
}

// openFirst clicks the first group. It finds and clicks it in one step: each event draws the
// list anew, so a node that was found before may be gone.
func (b *browser) openFirst(t *testing.T) {
	t.Helper()
	b.Do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector("#groups a").click()`))
}

// attempts are the attempts that the page has stored, oldest first.
func (b *browser) attempts(t *testing.T) []attemptOfPage {
	t.Helper()
	return chromium.Read[[]attemptOfPage](t, b.Tab, `Object.keys(localStorage).filter((name) => name.startsWith("semel-chat.attempt."))
		.map((name) => JSON.parse(localStorage.getItem(name))).sort((a, b) => a.at - b.at)`)
}

// attemptOfPage is an entry in the browser's storage.
type attemptOfPage struct{ Key, Kind, Text string }

// untilNoAttempt waits until the page has deleted all attempts.
func (b *browser) untilNoAttempt(t *testing.T) {
	t.Helper()
	b.Until(t, `!Object.keys(localStorage).some((name) => name.startsWith("semel-chat.attempt."))`)
}

// css is a selector.
func css(selector string) chromedp.CSS { return chromedp.CSS(selector) }
