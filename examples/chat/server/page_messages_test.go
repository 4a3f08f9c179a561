//go:build !race

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageScrolls: a long conversation opens at its end, and the newest message and the
// composer are in view, on a desktop and on a phone. Earlier messages are loaded when the user
// scrolls up, and the view stays where it was.
func TestPageScrolls(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	ada := b.signIn(t, s.base, "Ada")
	group := s.newGroup(t, ada, "Long")
	const sent = 120
	for i := range sent {
		s.say(t, ada, group, fmt.Sprint("m", i), fmt.Sprintf("Message %d of a long talk", i)).want(t, http.StatusCreated, "")
	}
	s.untilQueue(t, ada, "welcome_member", queueCount{Done: 1})
	last := fmt.Sprintf("Message %d of a long talk", sent-1)
	b.Do(t, chromedp.Navigate(s.base+"/#/g/"+group)) // a deep link
	b.untilMessage(t, last)
	const inView = `(() => { const within = (e) => { const r = e.getBoundingClientRect(); return r.height > 0 && r.top >= 0 && r.bottom <= innerHeight + 1; };
		return within(document.querySelector("#messages li:last-child")) && within(document.getElementById("message-text")); })()`
	b.Until(t, inView)
	b.Shoot(t, "long")
	b.phone(t)
	b.Until(t, inView)
	b.wantNarrow(t)
	b.Shoot(t, "long-phone")
	if n := chromium.Read[int](t, b.Tab, `document.querySelectorAll("#messages li[data-seq]").length`); n > 50 {
		t.Errorf("%d messages were loaded, want the newest page", n)
	}
	// A push that is drawn before the browser has told of the scrolling does not move the view to the end again.
	b.Do(t, chromedp.Evaluate[chromedp.Void](`import("/static/model.js").then(({ groups, model }) => {
		document.getElementById("scroller").scrollTop = 0;
		for (const id of groups.keys()) model.dispatchEvent(new CustomEvent("group", { detail: { id } }));
	})`, chromedp.EvalAwaitPromise))
	b.Until(t, `document.querySelectorAll("#messages li[data-seq]").length >= 100`)
	if top := chromium.Read[float64](t, b.Tab, `document.getElementById("scroller").scrollTop`); top < 200 {
		t.Errorf("after earlier messages were loaded, the view is at %v from the top, want where it was", top)
	}
	s.say(t, ada, group, "more", "One more").want(t, http.StatusCreated, "")
	b.untilMessage(t, "One more")
	b.Do(t, chromedp.WaitVisible(css("#to-end")), chromedp.Click(css("#to-end")))
	b.Until(t, inView)
	b.Do(t, chromedp.SetValue(css("#message-text"), "Two\nlines"), chromedp.Click(css("#message-send")))
	b.untilMessage(t, "Two\nlines")
	b.Do(t, chromedp.Reload())
	b.untilOpen(t, "Long")
}

// TestPageKeepsWhatWasWritten: while the server is away, two tabs send messages and are closed.
// A page that is opened later sends them. A draft stays in its tab and conversation.
func TestPageKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := browse(t)
	f := newFiles(t, inline)
	s := serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-addr", realtest.FreeAddr(t))...)
	ada := b.signIn(t, s.base, "Ada")
	group := s.newGroup(t, ada, "Notes")
	address := s.base + "/#/g/" + group
	b.Do(t, chromedp.Navigate(address))
	b.untilOpen(t, "Notes")
	second := &browser{b.Another(t)}
	second.Do(t, chromedp.Navigate(address))
	second.untilOpen(t, "Notes")
	s.stop()
	for tab, text := range map[*browser]string{b: "from the first tab", second: "from the second tab"} {
		tab.Do(t, chromedp.WaitVisible(css("#offline")))
		tab.write(t, text)
	}
	b.Until(t, `document.querySelectorAll("#messages li[data-state=waiting]").length > 0`)
	second.Do(t, chromedp.SendKeys(css("#message-text"), "a draft"))
	b.Shoot(t, "offline")
	// A browser shows one tab what another one has stored a moment later.
	b.Until(t, `Object.keys(localStorage).filter((name) => name.startsWith("semel-chat.attempt.")).length === 2`)
	second.Do(t, chromedp.Navigate("about:blank"))
	b.Do(t, chromedp.Navigate("about:blank"))
	s = serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-addr", strings.TrimPrefix(s.base, "http://"))...)
	b.Do(t, chromedp.Navigate(address))
	b.untilMessage(t, "from the first tab")
	b.untilMessage(t, "from the second tab")
	b.untilNoAttempt(t)
	second.Do(t, chromedp.Navigate(address))
	second.untilMessage(t, "from the second tab")
	second.Until(t, `document.getElementById("message-text").value === "a draft"`)
	texts := s.textsOf(t, ada, group)
	slices.Sort(texts)
	check.NoDiff(t, cmp.Diff([]string{"from the first tab", "from the second tab"}, texts), "the group")
}

// TestPageKeepsRefusedMessages: a message that the server refuses stays in the conversation
// with the reason, and a revoked session shows the sign-in form.
func TestPageKeepsRefusedMessages(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	refusing := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hold.armed.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages") {
				r.URL.Path = strings.Replace(r.URL.Path, "/messages", "x/messages", 1) // another group
			}
			next.ServeHTTP(w, r)
		})
	}}
	s := serveLocal(t, refusing, newFiles(t, inline).args(time.Minute)...)
	ada := b.signIn(t, s.base, "Ada")
	b.create(t, "Notes", "")
	b.untilOpen(t, "Notes")
	hold.armed.Store(true)
	b.write(t, "Keep me")
	b.Until(t, `document.querySelector("#messages li[data-state=failed] p")?.textContent === "Keep me"`)
	b.Shoot(t, "not-sent")
	hold.armed.Store(false)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#messages button")].find((b) => b.textContent === "Send again").click()`))
	b.untilMessage(t, "Keep me")
	b.untilNoAttempt(t)
	b.Do(t, chromedp.SendKeys(css("#message-text"), "unfinished"))
	s.ask(t, ada, "DELETE", "/v1/sessions/current", "").want(t, http.StatusNoContent, "")
	b.logIn(t, "Ada")
	b.untilOpen(t, "Notes")
	b.Until(t, `document.getElementById("message-text").value === "unfinished"`)
}

// TestPageWithoutWebSockets: where WebSockets cannot be opened, server-sent events deliver.
func TestPageWithoutWebSockets(t *testing.T) {
	t.Parallel()
	b := browse(t)
	blocked := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/ws" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}
	s := serveLocal(t, blocked, newFiles(t, inline).args(time.Minute)...)
	ada, grace := b.signIn(t, s.base, "Ada"), s.signIn(t, "Grace")
	group := s.newGroup(t, grace, "Readers", ada.ID)
	b.untilGroups(t, "Readers")
	b.Until(t, `document.querySelector("#groups .count")?.textContent === "2 unread"`) // both welcomes
	b.openFirst(t)
	b.untilOpen(t, "Readers")
	s.say(t, grace, group, "m", "Good morning").want(t, http.StatusCreated, "")
	b.untilMessage(t, "Good morning")
}

// TestPageCatchesUp: while the server is away, the user writes two messages and another member one. Afterwards
// the page that stayed open shows all of them, and those of the user in their order.
func TestPageCatchesUp(t *testing.T) {
	t.Parallel()
	b, f := browse(t), newFiles(t, inline)
	s := serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-addr", realtest.FreeAddr(t))...)
	ada, grace := b.signIn(t, s.base, "Ada"), s.signIn(t, "Grace")
	group := s.newGroup(t, ada, "Notes", grace.ID)
	b.untilGroups(t, "Notes")
	b.openFirst(t)
	b.untilOpen(t, "Notes")
	b.Do(t, chromedp.Evaluate[chromedp.Void](`window.notReloaded = true`))
	s.stop()
	b.Do(t, chromedp.WaitVisible(css("#offline")))
	written := []string{"first", "second", "third"}
	for _, text := range written {
		b.write(t, text)
	}
	b.Until(t, `document.querySelectorAll("#messages li[data-state]").length === 3`)
	b.Shoot(t, "waiting")
	elsewhere := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	elsewhere.say(t, grace, group, "m", "while you were away").want(t, http.StatusCreated, "")
	elsewhere.stop()
	s = serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-addr", strings.TrimPrefix(s.base, "http://"))...)
	for _, text := range append(written, "while you were away") {
		b.untilMessage(t, text)
	}
	b.Until(t, `document.getElementById("offline").hidden`)
	b.untilNoAttempt(t)
	texts := s.textsOf(t, ada, group)
	check.NoDiff(t, cmp.Diff(written, texts), "the group")
	if !chromium.Read[bool](t, b.Tab, `window.notReloaded === true`) {
		t.Error("the page was loaded again")
	}
}

// TestPageReadsAgain: a request of the page fails because its connection breaks. If the page was opening a
// conversation, it repeats the request until it has an answer. If the page was fetching a change, which takes
// two requests, it shows the messages of the first answer although the second request fails.
func TestPageReadsAgain(t *testing.T) {
	t.Parallel()
	var broken atomic.Pointer[string] // what the paths of reads that break end with
	breaking := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if end := broken.Load(); end != nil && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, *end) {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	}}
	b, f := browse(t), newFiles(t, inline)
	s := serveLocal(t, breaking, append(f.args(time.Minute), "-addr", realtest.FreeAddr(t))...)
	ada, grace := b.signIn(t, s.base, "Ada"), s.signIn(t, "Grace")
	group := s.newGroup(t, ada, "Notes", grace.ID)
	s.say(t, grace, group, "m1", "before").want(t, http.StatusCreated, "")
	b.untilGroups(t, "Notes")

	messages := "/messages"
	broken.Store(&messages)
	b.openFirst(t)
	b.Until(t, `document.getElementById("talk-status").textContent !== ""`)
	broken.Store(nil)
	b.untilMessage(t, "before")
	b.Until(t, `document.getElementById("talk-status").textContent === ""`)

	s.stop()
	b.Do(t, chromedp.WaitVisible(css("#offline")))
	elsewhere := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	elsewhere.say(t, grace, group, "m2", "meanwhile").want(t, http.StatusCreated, "")
	elsewhere.stop()
	description := "/" + group
	broken.Store(&description)
	serveLocal(t, breaking, append(f.args(time.Minute), "-addr", strings.TrimPrefix(s.base, "http://"))...)
	b.untilMessage(t, "meanwhile")
}

// TestPageShowsHostileText: markup, scripts, addresses of scripts, marks of direction, characters that
// cannot be seen and very long words stay text, and do not change what is beside them.
func TestPageShowsHostileText(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	ada := b.signIn(t, s.base, "Ada")
	texts := []string{
		`<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`,
		`javascript:alert(1) https://a.example/"onmouseover="document.title='hacked' data:text/html,<script>1</script>`,
		"right to left: \u202e<b>txt.exe", "isolates: \u2067 never closed", "zero\u200bwidth\u2060\ufeff",
		strings.Repeat("W", 3999), strings.Repeat("https://a.example/x", 200), "Z" + strings.Repeat("\u0363", 500), "${x} {{x}} %s \\u003c",
	}
	names := []string{"<b>bold</b>", "\u202eetanretla", strings.Repeat("W", 100)}
	var group string
	for i, name := range names {
		group = s.send(t, creation(ada, fmt.Sprint("g", i), name)).want(t, http.StatusCreated, "").value(t)["id"].(string)
	}
	for i, text := range texts {
		s.say(t, ada, group, fmt.Sprint("k", i), text).want(t, http.StatusCreated, "")
	}
	for _, text := range []string{"\u200b\u200d\u2060", " \u202e\t", "\u0301"} {
		s.say(t, ada, group, "k", text).want(t, http.StatusBadRequest, "invalid")
		s.send(t, creation(ada, "k", text)).want(t, http.StatusBadRequest, "invalid")
	}
	b.phone(t)
	b.Do(t, chromedp.Navigate(s.base+"/#/g/"+group))
	b.untilMessage(t, texts[len(texts)-1])
	b.Shoot(t, "hostile-phone")
	b.wantNarrow(t)
	if height := chromium.Read[int](t, b.Tab, `Math.round(document.getElementById("talk-title").getBoundingClientRect().height)`); height > 80 {
		t.Errorf("a long name is %d pixels high", height)
	}
	got := chromium.Read[[]string](t, b.Tab, `[...document.querySelectorAll("#messages li p")].map((p) => p.textContent)`)
	for _, text := range texts {
		if want, _ := json.Marshal(text); !strings.Contains(fmt.Sprintf("%q", got), fmt.Sprintf("%q", text)) {
			t.Errorf("the page does not show %s as it is", want)
		}
	}
	check.Equal(t, chromium.Read[int](t, b.Tab, `document.querySelectorAll("#messages :is(img, script, b), #groups :is(img, script, b)").length`), 0, "elements that texts have made")
	for _, address := range chromium.Read[[]string](t, b.Tab, `[...document.querySelectorAll("#messages a")].map((a) => a.protocol)`) {
		check.Equal(t, address, "https:", "the scheme of a link")
	}
	if title := chromium.Read[string](t, b.Tab, `document.title`); strings.Contains(title, "hacked") {
		t.Error("a script of a message has run")
	}
	for _, selector := range []string{"#messages li p", "#groups .name", "#talk-title"} {
		if how := chromium.Read[string](t, b.Tab, fmt.Sprintf(`getComputedStyle(document.querySelector(%q)).unicodeBidi`, selector)); how != "isolate" && how != "plaintext" {
			t.Errorf("the direction of %s is %s: its text can change what is beside it", selector, how)
		}
	}
}
