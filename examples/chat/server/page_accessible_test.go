//go:build !race

package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageByKeyboard creates a group, writes, and changes the conversation without a pointer. A draft
// stays with its conversation, and messages have their days between them.
func TestPageByKeyboard(t *testing.T) {
	t.Parallel()
	b, f := browse(t), newFiles(t, inline)
	s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	ada := b.signIn(t, s.base, "Ada")
	press := func(keys string, options ...chromedp.KeyOption) {
		t.Helper()
		b.Do(t, chromedp.KeyEvent(keys, options...))
	}
	focused := func(id string) {
		t.Helper()
		b.Until(t, `document.activeElement.id === "`+id+`"`)
	}
	focused("new-group")
	press(kb.Enter)
	focused("create-name")
	press("Notes")
	press(kb.Enter)
	b.untilOpen(t, "Notes")
	focused("message-text")
	press("one")
	press(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierShift))
	press("two")
	press(kb.Enter)
	b.untilMessage(t, "one\ntwo")
	press("unfinished")
	press(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)) // the last message, or the list of messages
	b.Until(t, `document.activeElement.closest("#scroller") !== null`)
	b.Do(t, chromedp.Focus(css("#show-details")))
	press(kb.Enter)
	b.Do(t, chromedp.WaitVisible(css("#details")))
	press(kb.Escape)
	focused("show-details")
	s.send(t, creation(ada, "k", "Other")).want(t, http.StatusCreated, "")
	b.untilGroups(t, "Notes", "Other")
	open := func(name string) {
		t.Helper()
		b.Do(t, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#groups a")].find((a) => a.textContent.startsWith("`+name+`")).focus()`))
		press(kb.Enter)
		b.untilOpen(t, name)
	}
	open("Other")
	check.Equal(t, chromium.Read[string](t, b.Tab, `document.getElementById("message-text").value`), "", "the draft in another conversation")
	open("Notes")
	b.Until(t, `document.getElementById("message-text").value === "unfinished"`)
	// The key that has opened a conversation may still be down when the composer gets the focus.
	open("Other")
	b.Do(t, chromedp.SendKeys(css("#message-text"), "kept"))
	if text := chromium.Read[string](t, b.Tab, `(() => {
		const text = document.getElementById("message-text");
		text.blur();
		text.focus();
		const inserts = text.dispatchEvent(new InputEvent("beforeinput", {inputType: "insertLineBreak", cancelable: true}));
		return text.value + (inserts ? " and a line break" : "");
	})()`); text != "kept" {
		t.Errorf("after an Enter that was pressed elsewhere the composer has %q, want the draft", text)
	}
	press(kb.Enter)
	b.untilMessage(t, "kept")
	open("Notes")

	s.untilQueue(t, ada, "welcome_member", queueCount{Done: 2})
	check.Must(openFile(t, f.domain).ExecContext(t.Context(), `update messages set created_at = 1577880000000000 where seq = 1`))(t)
	b.Do(t, chromedp.Reload())
	b.untilMessage(t, "one\ntwo")
	days := chromium.Read[[]string](t, b.Tab, `[...document.querySelectorAll("#messages li")].map((li) => li.className === "day" ? li.textContent : "-")`)
	if len(days) < 4 || !strings.Contains(days[0], "2020") || days[1] != "-" || days[2] == "-" || strings.Contains(days[2], "2020") {
		t.Errorf("the conversation has %q, want a day above the first message, and another one above the next", days)
	}
}

// TestPageIsAccessible: in each state, on a desktop and a phone, light and dark, each control has a name,
// there is one main heading, and texts contrast with what is behind them. Nothing is loaded from another server.
func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	readable := func(state string) {
		t.Helper()
		grounds := make(map[string]bool)
		for _, width := range []int64{1280, 390} {
			b.Do(t, chromedp.EmulateViewport(width, 844))
			if roles := b.Unnamed(t); len(roles) > 0 {
				t.Errorf("%s, %d pixels wide: %q have no name", state, width, roles)
			}
			check.Equal(t, chromium.Read[int](t, b.Tab, `document.querySelectorAll("h1").length`), 1, "%s: main headings", state)
			for _, scheme := range []string{"light", "dark"} {
				b.Scheme(t, scheme)
				grounds[chromium.Read[string](t, b.Tab, `getComputedStyle(document.body).backgroundColor`)] = true
				for _, text := range chromium.Read[[]string](t, b.Tab, lowContrast) {
					t.Errorf("%s, %d pixels wide, %s: low contrast of %s", state, width, scheme, text)
				}
			}
		}
		check.Equal(t, len(grounds), 2, "%s: backgrounds, light and dark", state)
		if others := chromium.Read[[]string](t, b.Tab, `performance.getEntriesByType("resource").map((e) => e.name).filter((name) => new URL(name).origin !== location.origin)`); len(others) > 0 {
			t.Errorf("%s: the page has loaded %q", state, others)
		}
	}
	b.Do(t, chromedp.Navigate(s.base), chromedp.WaitVisible(css("#sign-in-name")))
	readable("sign-in")
	ada, grace := b.signIn(t, s.base, "Ada"), s.signIn(t, "Grace")
	readable("no groups")
	group := s.newGroup(t, ada, "Talk", grace.ID)
	s.send(t, creation(grace, "k", "Unread", ada.ID)).want(t, http.StatusCreated, "")
	s.say(t, grace, group, "m", "See https://example.com/").want(t, http.StatusCreated, "")
	s.say(t, ada, group, "m", "Thanks").want(t, http.StatusCreated, "")
	b.untilGroups(t, "Talk", "Unread")
	b.Do(t, chromedp.Navigate(s.base+"/#/g/"+group))
	b.untilMessage(t, "Thanks")
	readable("conversation")
	b.Do(t, chromedp.Click(css("#show-details")), chromedp.WaitVisible(css("#add-names")))
	readable("details")
	b.Do(t, chromedp.Navigate(s.base+"/retries"), chromedp.WaitVisible(css("#create-50")))
	readable("retries")
}

// lowContrast lists the visible texts whose contrast is below 4.5, as WCAG 2 computes it.
const lowContrast = `(() => {
	const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
	const light = (colour) => parts(colour).slice(0, 3).map((c) => c / 255)
		.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const colour = getComputedStyle(e).backgroundColor;
			if ((parts(colour)[3] ?? 1) === 1) return colour;
		}
		return "rgb(255, 255, 255)";
	};
	const shown = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.disabled &&
		[...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim()));
	return shown.flatMap((e) => {
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		return ratio < 4.5 ? [e.tagName + " " + e.textContent.trim().slice(0, 40) + " " + ratio.toFixed(2)] : [];
	});
})()`
