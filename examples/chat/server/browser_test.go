package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/internal/realtest/chromium"
)

// browser is one tab of a headless browser.
type browser struct{ *chromium.Tab }

func browse(t *testing.T) *browser {
	t.Helper()
	return &browser{chromium.Open(t, patience)}
}

// signIn opens a server's page and signs in as a new user.
func (b *browser) signIn(t *testing.T, base, name string) user {
	t.Helper()
	b.Do(t,
		chromedp.Navigate(base),
		chromedp.WaitVisible(css("#sign-in-name")),
		chromedp.SendKeys(css("#sign-in-name"), name),
		chromedp.SendKeys(css("#sign-in-password"), password),
		chromedp.Click(css("#sign-up-button")),
		chromedp.WaitVisible(css("#new-group")),
	)
	return b.user(t)
}

// user is the user that is signed in.
func (b *browser) user(t *testing.T) user {
	t.Helper()
	var u user
	text := chromium.Read[string](t, b.Tab, `localStorage.getItem("semel-chat.session")`)
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// logIn opens a page of a server and signs in as a user that exists.
func (b *browser) logIn(t *testing.T, address, name string) {
	t.Helper()
	b.Do(t, chromedp.Navigate(address), chromedp.WaitVisible(css("#sign-in-name")),
		chromedp.SendKeys(css("#sign-in-name"), name), chromedp.SendKeys(css("#sign-in-password"), password),
		chromedp.Click(css("#sign-in-button")), chromedp.WaitVisible(css("#new-group")))
}

// phone makes the page as small as that of a phone.
func (b *browser) phone(t *testing.T) {
	t.Helper()
	b.Do(t, chromedp.EmulateViewport(390, 844))
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

// Expressions that the tests wait for.
const (
	allAnswered = `document.getElementById("storm-status").textContent === "All have their answer."`
	someWaiting = `document.querySelectorAll('.tile[data-state="progress"]').length > 0`
	noServer    = `document.querySelectorAll('.tile[data-state="away"]').length > 0`
)

// count reads a number below the panel.
func (b *browser) count(t *testing.T, id string) string {
	t.Helper()
	return strings.TrimSpace(chromium.Read[string](t, b.Tab, `document.getElementById("`+id+`").textContent`))
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
