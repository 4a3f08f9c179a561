// Package chromium runs a real browser for tests of pages.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/internal/check"
)

// patience is how long an action may take. A test does not fail because a machine is slow.
const patience = 4 * time.Minute

// textLimit is how long Text waits for the page of a test that has failed.
const textLimit = 10 * time.Second

// Tab is one tab of a headless browser.
type Tab struct {
	Ctx context.Context //nolint:containedctx // chromedp keeps the tab in it
}

// shared is the browser of the tests that run now. A start takes longer than most tests of a page, so
// each test has a browser context of its own instead: tabs, cookies and storage that no other test sees.
var shared struct { //nolint:gochecknoglobals // one browser for all tests of a binary is its purpose
	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	stop func()
	uses int // the browser ends with the last one
}

// Open opens a tab in a new browser context until the test ends. If the machine has no browser,
// the test is skipped, or fails if CI=true. An error that a script of the page does not
// catch fails the test.
func Open(t *testing.T) *Tab {
	t.Helper()
	path := findBrowser()
	if path == "" && os.Getenv("CI") == "true" {
		t.Fatal("there is no Chromium or Chrome in the PATH")
	}
	if path == "" {
		t.Skip("there is no Chromium or Chrome in the PATH; on Debian: apt-get install chromium-headless-shell")
	}
	t.Attr("engine", "chromium")
	ctx, _ := chromedp.NewContext(acquire(t, path), chromedp.WithNewBrowserContext())
	check.Require(t, chromedp.Do(ctx), "open a tab")
	b := &Tab{Ctx: ctx}
	thrown := b.listen()
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the tab is closed
		for _, text := range <-thrown {
			t.Errorf("the page threw %s", text)
		}
	})
	return b
}

// acquire returns the context of the shared browser, until the end of the test.
func acquire(t *testing.T, path string) context.Context {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.uses == 0 {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
		allocator, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
		ctx, _ := chromedp.NewContext(allocator)
		if err := chromedp.Do(ctx); err != nil { // starts it
			end()
			t.Fatalf("start %s: %v", path, err)
		}
		shared.ctx, shared.stop = ctx, func() {
			_ = chromedp.Cancel(ctx) // waits until the browser has ended
			end()
		}
	}
	shared.uses++
	t.Cleanup(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.uses--; shared.uses == 0 {
			shared.stop()
		}
	})
	return shared.ctx
}

// listen collects uncaught errors of the page's scripts until the tab closes.
func (b *Tab) listen() <-chan []string {
	messages, done := chromedp.Console(b.Ctx), make(chan []string, 1)
	go func() {
		var thrown []string
		for m, err := range messages {
			if err != nil {
				break
			}
			if m.IsException() || m.Source == "security" {
				thrown = append(thrown, m.String())
			}
		}
		done <- thrown
	}()
	return done
}

func findBrowser() string {
	for _, name := range []string{
		"chromium-headless-shell", "headless-shell", "headless_shell", "chromium", "chromium-browser",
		"google-chrome", "google-chrome-stable", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Do runs actions. If they fail, or take very long, the test fails and logs the page's text.
func (b *Tab) Do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Shoot(t, "failed")
		t.Fatalf("%v; the page says:\n%s", err, b.Text())
	}
}

// Until waits until an expression is true on the page.
func (b *Tab) Until(t *testing.T, expression string) {
	t.Helper()
	b.Do(t, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(patience)))
}

// Read evaluates an expression on the page.
func Read[T any](t *testing.T, b *Tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	check.Require(t, err, "%s", expression)
	return v
}

// Text returns the text of the page, or the error of reading it.
func (b *Tab) Text() string {
	ctx, cancel := context.WithTimeout(b.Ctx, textLimit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// Shoot saves screenshots of the page, light and dark, in the directory
// SEMEL_SHOTS.
func (b *Tab) Shoot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SEMEL_SHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		check.NoError(t, b.scheme(scheme), "picture %s", name)
		picture, err := chromedp.Run(b.Ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), picture, 0o600)
		}
		check.NoError(t, err, "picture %s", name)
	}
}

// Scheme makes the page prefer "light" or "dark" colours.
func (b *Tab) Scheme(t *testing.T, scheme string) {
	t.Helper()
	check.Require(t, b.scheme(scheme))
}

func (b *Tab) scheme(scheme string) error {
	return chromedp.Do(b.Ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// Unnamed lists the roles of controls that have no name in the accessibility tree: a screen
// reader could not tell the user what they do.
func (b *Tab) Unnamed(t *testing.T) (roles []string) {
	t.Helper()
	err := chromedp.Do(b.Ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		tree, err := cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		for _, node := range tree.Nodes {
			if node.Ignored || node.Role == nil {
				continue
			}
			role := strings.Trim(string(node.Role.Value), `"`)
			control := slices.Contains([]string{"button", "link", "textbox", "combobox", "dialog", "heading", "log", "navigation"}, role)
			if control && (node.Name == nil || string(node.Name.Value) == `""`) {
				roles = append(roles, role)
			}
		}
		return err
	}))
	check.Require(t, err)
	return roles
}

// Another opens another tab of the same browser, with the same cookies.
func (b *Tab) Another(t *testing.T) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.Ctx)
	t.Cleanup(cancel)
	check.Require(t, chromedp.Do(ctx), "open a tab")
	return &Tab{Ctx: ctx}
}
