package server_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browser is one tab of a headless browser.
type browser struct {
	ctx context.Context // chromedp keeps the tab in it
}

// browse opens a tab. If the machine has no browser, the test is skipped, or fails
// if CI=true.
func browse(t *testing.T) *browser {
	t.Helper()
	path := findBrowser()
	if path == "" && os.Getenv("CI") == "true" {
		t.Fatal("there is no Chromium or Chrome in the PATH")
	}
	if path == "" {
		t.Skip("there is no Chromium or Chrome in the PATH; on Debian: apt-get install chromium-headless-shell")
	}
	t.Attr("engine", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	b := &browser{ctx: ctx}
	b.do(t) // starts it
	thrown := b.listen()
	t.Cleanup(func() {
		cancel()
		for _, text := range <-thrown {
			t.Errorf("the page threw %s", text)
		}
	})
	return b
}

// listen collects uncaught errors of the page's scripts until the tab closes.
func (b *browser) listen() <-chan []string {
	messages, done := chromedp.Console(b.ctx), make(chan []string, 1)
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

// do runs actions. If one fails, the test fails and logs the page's text.
func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.shoot(t, "failed")
		t.Fatalf("%v; the page says:\n%s", err, b.text())
	}
}

// until waits until an expression is true on the page.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	b.do(t, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(patience)))
}

// read evaluates an expression on the page.
func read[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (b *browser) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// shoot saves screenshots of the page, light and dark, in the directory
// SEMEL_SHOTS.
func (b *browser) shoot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SEMEL_SHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		if err != nil {
			t.Errorf("picture %s: %v", name, err)
		}
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), picture, 0o600)
		}
		if err != nil {
			t.Errorf("picture %s: %v", name, err)
		}
	}
}

// signIn opens a server's page and signs in as a new user.
func (b *browser) signIn(t *testing.T, base, name string) user {
	t.Helper()
	b.do(t,
		chromedp.Navigate(base),
		chromedp.WaitVisible(css("#sign-in-name")),
		chromedp.SendKeys(css("#sign-in-name"), name),
		chromedp.Click(css("#sign-in-button")),
		chromedp.WaitVisible(css("#create-form")),
	)
	var u user
	text := read[string](t, b, `localStorage.getItem("semel-chat.session")`)
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// fill fills the form of a new group.
func (b *browser) fill(t *testing.T, name, members string) {
	t.Helper()
	b.do(t, chromedp.SendKeys(css("#create-name"), name))
	if members != "" {
		b.do(t, chromedp.SendKeys(css("#create-members"), members))
	}
}

// storm requests one group 50 times.
func (b *browser) storm(t *testing.T, name, members string) {
	t.Helper()
	b.fill(t, name, members)
	b.do(t, chromedp.Click(css("#create-50")))
}

// tiles counts the tiles of the panel by state.
func (b *browser) tiles(t *testing.T) map[string]int {
	t.Helper()
	return read[map[string]int](t, b, `[...document.querySelectorAll(".tile")]
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
	return strings.TrimSpace(read[string](t, b, `document.getElementById("`+id+`").textContent`))
}

// wantKeyGone checks that the page has deleted the key after its answer.
func (b *browser) wantKeyGone(t *testing.T) {
	t.Helper()
	b.until(t, `localStorage.getItem("semel-chat.creation") === null`)
}

// css is a selector.
func css(selector string) chromedp.CSS { return chromedp.CSS(selector) }
