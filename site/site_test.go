package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestSiteInBrowser builds the site of this repository and reads it as a visitor does. The
// browser reports what the content security policy forbids, and Open fails the test for it.
func TestSiteInBrowser(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	if pages, err := build("..", out); err != nil || pages < 90 {
		t.Fatalf("%d pages, %v", pages, err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	b := chromium.Open(t, 3*time.Minute)

	t.Run("search", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/docs/quickstart.html"), chromedp.SendKeys(".search input", "ErrInDoubt"))
		b.Until(t, `document.querySelectorAll("#found a").length > 3`)
		b.Do(t, chromedp.Navigate(chromium.Read[string](t, b, `document.querySelector("#found a").href`)))
		check.Equal(t, chromium.Read[bool](t, b, `document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null`), true, "the result leads to a heading")
	})
	t.Run("languages", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/docs/quickstart.html"))
		b.Do(t, chromedp.Navigate(chromium.Read[string](t, b, `document.querySelector("a.language").href`)))
		check.Equal(t, chromium.Read[string](t, b, `document.documentElement.lang + location.pathname`), "zh-CN/docs/quickstart.zh-CN.html", "the other language")
		b.Do(t, chromedp.Focus(".search input"), chromedp.Evaluate[chromedp.Void](`void (field.value = "崩溃"); show()`))
		b.Until(t, `document.querySelectorAll("#found a").length > 3`)
	})
	t.Run("order", func(t *testing.T) {
		english := order(t, b, server.URL+"/index.html")
		translated := order(t, b, server.URL+"/index.zh-CN.html")
		check.Equal(t, strings.ReplaceAll(translated, chinese, ""), english, "the Chinese navigation")
	})
	for name, width := range map[string]int64{"desktop": 1360, "phone": 390} {
		b.Do(t, chromedp.EmulateViewport(width, 900))
		for _, page := range []string{"/index", "/docs/quickstart", "/docs/protocol", "/docs/architecture", "/docs/operations.zh-CN", "/docs/recipes/checkout", "/docs/guarantees", "/docs/guarantees.zh-CN", "/docs/recipes/payment", "/docs/comparison", "/docs/performance"} {
			b.Do(t, chromedp.Navigate(server.URL+page+".html"))
			check.Equal(t, chromium.Read[int](t, b, `Math.max(0, document.documentElement.scrollWidth - innerWidth)`), 0, "%s on a %s: width beyond the screen", page, name)
			check.Equal(t, chromium.Read[int](t, b, `performance.getEntriesByType("resource").filter((r) => !r.name.startsWith(location.origin)).length`), 0,
				"%s: requests to other servers", page)
			b.Shoot(t, name+strings.ReplaceAll(page, "/", "-"))
		}
	}
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
