package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// beyond lists the visible elements that the screen cuts off. What is in a block of code or in a
// picture may be wider than the screen: these scroll. A table scrolls on no screen.
const beyond = `[...document.body.querySelectorAll("*:not(.code pre *, .diagram *, .skip, .stack thead, .stack thead *)")]
	.filter((e) => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.right > innerWidth + 1 || r.left < -1); })
	.concat([...document.querySelectorAll(".table")].filter((e) => e.scrollWidth > e.clientWidth))
	.map((e) => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40)).join("\n")`

// covered lists the buttons that are above code.
const covered = `[...document.querySelectorAll(".code")].filter((e) => {
	const b = e.querySelector("button").getBoundingClientRect(), c = e.querySelector("pre").getBoundingClientRect();
	return b.height === 0 || b.right > innerWidth || b.left < c.right && b.right > c.left && b.bottom > c.top + 1 && b.top < c.bottom;
}).map((e) => e.textContent.slice(0, 60)).join("\n")`

// TestNothingIsCutOff measures every page on a desktop and on a phone.
func TestNothingIsCutOff(t *testing.T) {
	server := serve(t)
	b := chromium.Open(t)
	var pages []string
	check.Require(t, filepath.WalkDir("../docs", func(name string, _ os.DirEntry, err error) error {
		name = strings.TrimPrefix(filepath.ToSlash(name), "../")
		one := !testing.Short() || !strings.HasPrefix(name, "docs/decisions/00") // these are alike
		if filepath.Ext(name) == ".md" && one {
			pages = append(pages, target(name))
		}
		return err
	}))
	for _, page := range append(pages, "index.html", "index.zh-CN.html", "CHANGELOG.html") {
		b.Do(t, chromedp.Navigate(server.URL+"/"+page))
		for name, width := range map[string]int64{"desktop": 1280, "phone": 390} {
			b.Do(t, chromedp.EmulateViewport(width, 900))
			check.Equal(t, chromium.Read[string](t, b, beyond), "", "%s on a %s: beyond the screen", page, name)
			check.Equal(t, chromium.Read[string](t, b, covered), "", "%s on a %s: code below a button", page, name)
		}
	}
}

// TestWideTables: a desktop shows all columns of the widest table, and a phone shows each row as a
// card with the names of the columns.
func TestWideTables(t *testing.T) {
	server := serve(t)
	b := chromium.Open(t)
	b.Do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/docs/stores.html"))
	const lastColumn = `(r => r.width > 80 && r.right <= innerWidth && r.right <= document.querySelector(".table").getBoundingClientRect().right + 1)
		(document.querySelector("th:last-child").getBoundingClientRect())`
	check.Equal(t, chromium.Read[bool](t, b, lastColumn), true, "the last column is visible")
	b.Do(t, chromedp.EmulateViewport(390, 900))
	const labels = `[...document.querySelectorAll(".stack tbody tr:first-child")].every((row) => [...row.cells].every((cell, i) => {
		const label = getComputedStyle(cell, "::before").content, r = cell.getBoundingClientRect();
		const heading = row.closest("table").tHead.rows[0].cells[i].textContent;
		return cell.textContent === "" || heading === "" || JSON.parse(label) === heading && r.right <= innerWidth && (i === 0 || r.top >= row.cells[i - 1].getBoundingClientRect().bottom);
	}))`
	check.Equal(t, chromium.Read[bool](t, b, labels), true, "each cell is below the one before and has the name of its column")
}

// TestShadeWhereCodeScrolls: there is a shade at the edge of code behind which there is more, and
// at no other edge.
func TestShadeWhereCodeScrolls(t *testing.T) {
	server := serve(t)
	b := chromium.Open(t)
	b.Do(t, chromedp.EmulateViewport(390, 900), chromedp.Navigate(server.URL+"/docs/recipes/payment.html"))
	const block = `document.querySelector(".code[data-language=go] pre")`
	check.Equal(t, chromium.Read[bool](t, b, block+`.scrollWidth > `+block+`.clientWidth + 50`), true, "the code is wider than a phone")
	check.Equal(t, shades(t, b), "right", "at the begin")
	b.Do(t, chromedp.Evaluate[chromedp.Void](`void (`+block+`.scrollLeft = 50)`))
	check.Equal(t, shades(t, b), "left right", "in the middle")
	b.Do(t, chromedp.Evaluate[chromedp.Void](`void (`+block+`.scrollLeft = 10000)`))
	check.Equal(t, shades(t, b), "left", "at the end")
	b.Do(t, chromedp.EmulateViewport(3000, 900), chromedp.Evaluate[chromedp.Void](`void document.querySelector("main").style.setProperty("width", "2500px")`))
	check.Equal(t, shades(t, b), "", "on a page that shows all of it")
}

// shades looks at the edges of a picture of the first block of Go, in the space above its text.
func shades(t *testing.T, b *chromium.Tab) string {
	t.Helper()
	text, err := chromedp.Run(b.Ctx, chromedp.Screenshot(".code[data-language=go] pre"))
	check.Require(t, err)
	picture, err := png.Decode(bytes.NewReader(text))
	check.Require(t, err)
	var found []string
	size := picture.Bounds()
	middle := picture.At(size.Min.X+size.Dx()/2, size.Min.Y+5)
	for i, x := range []int{size.Min.X + 2, size.Max.X - 3} {
		if picture.At(x, size.Min.Y+5) != middle {
			found = append(found, []string{"left", "right"}[i])
		}
	}
	return strings.Join(found, " ")
}

// TestWithoutScript: tables are cards on a phone, and the list of pages opens, without JavaScript.
func TestWithoutScript(t *testing.T) {
	server := serve(t)
	b := chromium.Open(t)
	b.Do(t, scriptDisabled(), chromedp.EmulateViewport(390, 900), chromedp.Navigate(server.URL+"/docs/stores.html"))
	check.Equal(t, chromium.Read[int](t, b, `document.querySelectorAll(".code button").length`), 0, "what the script adds")
	check.Equal(t, chromium.Read[string](t, b, beyond), "", "beyond the screen")
	b.Do(t, chromedp.Click(".onpage summary"), chromedp.WaitVisible(chromedp.CSS(".onpage a")))
	b.Do(t, chromedp.Click(".contents label"), chromedp.WaitVisible(chromedp.CSS(".contents .groups")))
}

func scriptDisabled() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}
