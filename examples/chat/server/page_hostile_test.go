package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageShowsHostileText: markup, scripts, addresses of scripts, marks of direction, characters that
// cannot be seen and very long words stay text, and do not change what is beside them.
func TestPageShowsHostileText(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
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
	if n := chromium.Read[int](t, b.Tab, `document.querySelectorAll("#messages :is(img, script, b), #groups :is(img, script, b)").length`); n != 0 {
		t.Errorf("the texts have made %d elements", n)
	}
	for _, address := range chromium.Read[[]string](t, b.Tab, `[...document.querySelectorAll("#messages a")].map((a) => a.protocol)`) {
		if address != "https:" {
			t.Errorf("a link has the scheme %s", address)
		}
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
