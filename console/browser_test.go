package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/realtest/chromium"
	"github.com/semelgo/semel/store"
)

// fill makes records in most states.
func (g *rig) fill(t *testing.T) (doubt store.ID) {
	t.Helper()
	for i := range 14 {
		g.run(t, g.charge, fmt.Sprintf("order-2026-%04d", i), false)
	}
	for i := range 3 {
		doubt = g.run(t, g.charge, fmt.Sprintf("order-in-doubt-%d", i), true)
	}
	for i := range 4 {
		g.run(t, g.mail, fmt.Sprintf("welcome-%d", i), true)
	}
	for i := range 6 {
		check.Must(semel.Enqueue(t.Context(), g.engine, g.mail.Call(semel.Shared(), fmt.Sprintf("digest-%d", i), input{}), semel.EnqueueOptions{}))(t)
	}
	return doubt
}

// withoutScripts turns scripts of pages off. The test's own expressions still run.
func withoutScripts(t *testing.T, b *chromium.Tab) {
	t.Helper()
	b.Do(t, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// shown waits until the page has a text.
func shown(t *testing.T, b *chromium.Tab, text string) {
	t.Helper()
	realtest.Poll(t, fmt.Sprintf("%q on the page", text), func() bool { return strings.Contains(b.Text(), text) })
}

// A person reads, reveals, resolves in bulk and redrives, without scripts and with them.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := memoryRig(t)
			id := g.fill(t)
			b := chromium.Open(t)
			if !scripts {
				withoutScripts(t, b)
			}
			open := func(path string) { b.Do(t, chromedp.Navigate(g.server.URL+"/console/"+path)) }
			open("")
			shown(t, b, "in doubt")
			open("records") // the overview loads itself again, perhaps between finding a link and clicking it
			b.Do(t, chromedp.Click(chromedp.CSS(`nav a[href="doubt"]`)))
			shown(t, b, "order-in-doubt-1")
			letter := g.mail.Call(semel.ScopeOf("shop", "7"), "welcome-0", input{}).ID()
			open("record?id=" + letter.String())
			b.Do(t, chromedp.Click(chromedp.CSS(`form[action="record"][method="post"] button`)))
			shown(t, b, "4111-1111")
			open("doubt")
			b.Do(t, chromedp.Click(chromedp.CSS(`a[href*="action=resolve"]`)))
			shown(t, b, "7 records")
			b.Do(t,
				chromedp.Click(chromedp.CSS(`input[value="pending"]`)),
				chromedp.SendKeys(chromedp.CSS(`input[name="reason"]`), "the bank was down"),
				chromedp.Click(chromedp.CSS(`.decide button`)))
			shown(t, b, "7 done, 0 changed meanwhile")
			check.Equal(t, g.state(t, id), store.Pending, "the record is")
			if scripts { // the counters change without another visit
				open("")
				shown(t, b, "Records by state")
				g.run(t, g.charge, "order-late", true)
				b.Until(t, `document.querySelector('[data-live="tiles"] .figure').textContent === "1"`)
			}
		})
	}
}

// TestScreens saves pictures of all pages with SEMEL_SHOTS, and checks on each that nothing
// is wider than the screen, that each field has a label and that each cell of a head has a
// scope.
func TestScreens(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.fill(t)
	letter := g.run(t, g.mail, "welcome-"+strings.Repeat("long-", 30), true)
	wired := g.run(t, g.wire, "wire-1", true)
	for _, changes := range []int{1, 1, 1, 2, 3, 7, 60, 61, 64, 130} {
		g.sizes.ObserveBatch(t.Context(), changes)
	}
	g.setProbe(func(context.Context, string) (any, bool, error) { return "paid", true, nil })
	b := chromium.Open(t)
	for name, width := range map[string]int64{"desktop": 1280, "phone": 390} {
		b.Do(t, chromedp.EmulateViewport(width, 844))
		for page, path := range map[string]string{
			"overview": "", "records": "records?state=indoubt", "doubt": "doubt", "dead": "dead", "storage": "storage", "error": "none",
			"record": "record?id=" + id.String(), "letter": "record?id=" + letter.String(),
			"evidence": "record?id=" + wired.String(),
			"preview":  "preview?action=resolve&state=indoubt", "purge": "preview?action=purge",
		} {
			b.Do(t, chromedp.Navigate(g.server.URL+"/console/"+path), chromedp.WaitReady(chromedp.CSS("main")))
			if page == "evidence" {
				b.Do(t, chromedp.Click(chromedp.CSS(`form[action="probe"] button`)))
				shown(t, b, "The probe has found the effect.")
			}
			b.Shoot(t, "console-"+page+"-"+name)
			for _, fault := range append(chromium.Read[[]string](t, b, accessibility), b.Axe(t)...) {
				t.Errorf("%s at %d pixels: %s", page, width, fault)
			}
		}
	}
}

// accessibility lists faults of a page.
const accessibility = `(() => {
  const faults = [];
  const add = (text, e) => faults.push(text + ": " + (e ? e.outerHTML.slice(0, 120) : ""));
  if (document.documentElement.scrollWidth > innerWidth) add("wider than the screen: " + document.documentElement.scrollWidth);
  if (document.querySelectorAll("h1").length !== 1) add("not one h1");
  if (!document.documentElement.lang || !document.title) add("no language or title");
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!e.labels.length && !e.getAttribute("aria-label")) add("no label", e);
  for (const e of document.querySelectorAll("th")) if (!e.scope) add("no scope", e);
  for (const e of document.querySelectorAll("a, button"))
    if (!e.textContent.trim() && !e.getAttribute("aria-label")) add("no name", e);
  for (const e of document.querySelectorAll("[style], [onclick]")) add("inline", e);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) add("an id twice: " + ids);
  for (const e of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(e.getAttribute("aria-labelledby"))) add("no such label", e);
  return faults;
})()`
