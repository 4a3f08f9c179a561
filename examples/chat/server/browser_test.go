package server_test

import (
	"encoding/json"
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
		chromedp.WaitVisible(css("#create-form")),
	)
	var u user
	text := chromium.Read[string](t, b.Tab, `localStorage.getItem("semel-chat.session")`)
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// fill fills the form of a new group.
func (b *browser) fill(t *testing.T, name, members string) {
	t.Helper()
	b.Do(t, chromedp.SendKeys(css("#create-name"), name))
	if members != "" {
		b.Do(t, chromedp.SendKeys(css("#create-members"), members))
	}
}

// storm requests one group 50 times.
func (b *browser) storm(t *testing.T, name, members string) {
	t.Helper()
	b.fill(t, name, members)
	b.Do(t, chromedp.Click(css("#create-50")))
}

// tiles counts the tiles of the panel by state.
func (b *browser) tiles(t *testing.T) map[string]int {
	t.Helper()
	return chromium.Read[map[string]int](t, b.Tab, `[...document.querySelectorAll(".tile")]
		.reduce((n, tile) => ({...n, [tile.dataset.state]: (n[tile.dataset.state] ?? 0) + 1}), {})`)
}

// Expressions that the tests wait for.
const (
	allAnswered = `document.getElementById("storm-status").textContent === "All are answered."`
	someWaiting = `document.querySelectorAll('.tile[data-state="progress"]').length > 0`
	noServer    = `document.querySelectorAll('.tile[data-state="away"]').length > 0`
)

// count reads a number below the panel.
func (b *browser) count(t *testing.T, id string) string {
	t.Helper()
	return strings.TrimSpace(chromium.Read[string](t, b.Tab, `document.getElementById("`+id+`").textContent`))
}

// wantKeyGone checks that the page has deleted the key after its answer.
func (b *browser) wantKeyGone(t *testing.T) {
	t.Helper()
	b.Until(t, `localStorage.getItem("semel-chat.creation") === null`)
}

// css is a selector.
func css(selector string) chromedp.CSS { return chromedp.CSS(selector) }
