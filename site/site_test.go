package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// serve builds the site of this repository, and serves it.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	out := filepath.Join(t.TempDir(), "site")
	if pages, err := build("..", out); err != nil || pages < 90 {
		t.Fatalf("%d pages, %v", pages, err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	return server
}

// TestSiteInBrowser builds the site of this repository and reads it as a visitor does. The
// browser reports what the content security policy forbids, and Open fails the test for it.
func TestSiteInBrowser(t *testing.T) {
	server := serve(t)
	b := chromium.Open(t)

	t.Run("search", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/docs/quickstart.html"), chromedp.SendKeys(".search input", "ErrInDoubt"))
		b.Until(t, `document.querySelectorAll("#found a").length > 3`)
		for _, finding := range b.Axe(t) {
			t.Errorf("with results: %s", finding)
		}
		first := chromium.Read[string](t, b, `document.querySelector("#found a").href`)
		follow(t, b, first, chromedp.SendKeys(".search input", kb.Enter))
		check.Equal(t, chromium.Read[bool](t, b, `document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null`), true, "the result leads to a heading")
	})
	t.Run("languages", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/docs/quickstart.html"))
		for _, other := range []string{"zh-CN/docs/quickstart.zh-CN.html", "en/docs/quickstart.html", "zh-CN/docs/quickstart.zh-CN.html"} {
			language, page, _ := strings.Cut(other, "/")
			follow(t, b, server.URL+"/"+page, chromedp.Click("a.language"))
			check.Equal(t, chromium.Read[string](t, b, `document.documentElement.lang`), language, "the language of %s", page)
		}
		b.Do(t, chromedp.Focus(".search input"), chromedp.Evaluate[chromedp.Void](`void (field.value = "崩溃"); show()`))
		b.Until(t, `document.querySelectorAll("#found a").length > 3`)
	})
	t.Run("contents", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/index.html"))
		follow(t, b, server.URL+"/docs/quickstart.html", chromedp.SendKeys(`.contents a[href="docs/quickstart.html"]`, kb.Enter))
		b.Do(t, chromedp.EmulateViewport(390, 900), chromedp.SendKeys("#menu", kb.Enter), chromedp.WaitVisible(chromedp.CSS(".contents .groups")))
		b.Do(t, chromedp.Click(".contents label"), chromedp.WaitNotVisible(chromedp.CSS(".contents .groups")))
		b.Do(t, chromedp.EmulateViewport(1360, 900))
	})
	t.Run("copy", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/docs/quickstart.html"), clipboard(server.URL, browser.PermissionSettingDenied))
		b.Do(t, chromedp.Click(".code button"))
		b.Until(t, `getSelection().toString().trim() === document.querySelector(".code pre").innerText.trim()`)
		b.Do(t, clipboard(server.URL, browser.PermissionSettingGranted))
		for _, language := range []string{"console", "go"} {
			block := fmt.Sprintf(".code[data-language=%s]", language)
			shown := chromium.Read[string](t, b, fmt.Sprintf(`document.querySelector("%s pre").textContent`, block))
			want := shown
			if language == "console" { // the commands, without prompts and output
				want = ""
				for line := range strings.Lines(shown) {
					if command, is := strings.CutPrefix(line, "$ "); is {
						want += command
					}
				}
			}
			b.Do(t, chromedp.Click(block+" button"))
			b.Until(t, fmt.Sprintf(`document.querySelector("%s button").textContent === document.body.dataset.copied`, block))
			copied, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](`navigator.clipboard.readText()`, chromedp.EvalAwaitPromise))
			check.Require(t, err, "read the clipboard")
			check.Equal(t, copied, want, "the first block of %s, copied", language)
			check.Equal(t, want == "", false, "the first block of %s is empty", language)
		}
	})
	t.Run("order", func(t *testing.T) {
		english := order(t, b, server.URL+"/index.html")
		translated := order(t, b, server.URL+"/index.zh-CN.html")
		check.Equal(t, strings.ReplaceAll(translated, chinese, ""), english, "the Chinese navigation")
	})
	for name, width := range map[string]int64{"desktop": 1360, "phone": 390} {
		b.Do(t, chromedp.EmulateViewport(width, 900))
		for _, page := range []string{"/index", "/docs/quickstart", "/docs/protocol", "/docs/architecture", "/docs/operations.zh-CN", "/docs/http.zh-CN", "/docs/quickstart.zh-CN", "/docs/recipes/checkout", "/docs/guarantees", "/docs/guarantees.zh-CN", "/docs/recipes/payment", "/docs/comparison", "/docs/performance"} {
			b.Do(t, chromedp.Navigate(server.URL+page+".html"))
			check.Equal(t, chromium.Read[int](t, b, `Math.max(0, document.documentElement.scrollWidth - innerWidth)`), 0, "%s on a %s: width beyond the screen", page, name)
			check.Equal(t, chromium.Read[int](t, b, `performance.getEntriesByType("resource").filter((r) => !r.name.startsWith(location.origin)).length`), 0,
				"%s: requests to other servers", page)
			check.Equal(t, chromium.Read[int](t, b, `[...document.querySelectorAll("main *")].filter((e) => e.scrollWidth > e.clientWidth && ["auto", "scroll"].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0).length`), 0,
				"%s on a %s: parts that only a pointer can scroll", page, name)
			b.Shoot(t, name+strings.ReplaceAll(page, "/", "-"))
			for _, finding := range b.Axe(t) {
				t.Errorf("%s on a %s: %s", page, name, finding)
			}
		}
	}
}

// follow does what leads to another page, and waits until that is loaded.
func follow(t *testing.T, b *chromium.Tab, url string, step chromedp.Action[chromedp.Void]) {
	t.Helper()
	_, err := chromedp.RunResponse(b.Ctx, step)
	check.Require(t, err, "the way to %s", url)
	check.Equal(t, chromium.Read[string](t, b, `location.href`), url, "the page")
}

// clipboard lets the pages of a server use the clipboard, or not.
func clipboard(origin string, setting browser.PermissionSetting) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for _, name := range []string{"clipboard-read", "clipboard-write"} {
			_, err := cdp.Call(ctx, tab, browser.SetPermission, browser.SetPermissionParams{
				Permission: &browser.PermissionDescriptor{Name: name}, Setting: setting, Origin: origin,
				BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// order lists the pages of the navigation.
func order(t *testing.T, b *chromium.Tab, url string) string {
	t.Helper()
	b.Do(t, chromedp.Navigate(url))
	return chromium.Read[string](t, b, `[...document.querySelectorAll(".contents li a")].map((a) => a.getAttribute("href")).join("\n")`)
}

// TestMistakesFailTheBuild: what a page cannot show is an error that names the page.
func TestMistakesFailTheBuild(t *testing.T) {
	for mistake, want := range map[string]string{
		"[a](missing.md)":                            "docs/b.md: link to docs/missing.md, which does not exist",
		"[a](README.md#nothing)":                     "docs/b.md: link to #nothing of docs/README.md, which has no such heading",
		"[a](#nothing)":                              "docs/b.md: link to #nothing of docs/b.md, which has no such heading",
		"```mermaid\npie title Pets\n```":            `docs/b.md: unknown kind of diagram: "pie title Pets"`,
		"```mermaid\nsequenceDiagram\nA->>B: x\n```": `docs/b.md: "A" or "B" is not declared as a participant`,
		"```mermaid\nflowchart TD\na --- b\n```":     `docs/b.md: unknown statement of a graph: "a --- b"`,
	} {
		source := t.TempDir()
		for _, name := range []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/README.md", "docs/README.zh-CN.md"} {
			check.Require(t, write(source, name, []byte("# Title\n")))
		}
		check.Require(t, write(source, aliases, []byte("# a comment\ndocs/b.md: bee, wasp\n")))
		out := filepath.Join(t.TempDir(), "site")
		check.Require(t, write(source, "docs/b.md", []byte("# B\n")))
		check.Result(build(source, out))(t, 8, "a correct site")
		check.Require(t, write(source, "docs/b.md", []byte("# B\n\n"+mistake+"\n")))
		if _, err := build(source, out); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", mistake, err, want)
		}
		_, err := os.Stat(filepath.Join(out, "docs", "b.html"))
		check.NoError(t, err, "the last correct site is gone")
	}
}
