//go:build !race

package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageShowsChangesOfOthers: an invitation, messages, their edits and deletions, new
// members and a new name are seen without a reload.
func TestPageShowsChangesOfOthers(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	grace := s.signIn(t, "Grace")
	s.signIn(t, "Alan")
	ada := b.signIn(t, s.base, "Ada")
	b.Do(t, chromedp.WaitVisible(css("#no-groups")))
	group := s.newGroup(t, grace, `Readers <b>& "writers"`, ada.ID)
	path := "/v1/groups/" + group
	b.untilGroups(t, `Readers <b>& "writers"`)
	b.Until(t, `document.querySelector("#groups .count")?.textContent === "2 unread"`) // a welcome for each member
	b.Until(t, `document.title === "(2) Semel chat"`)
	b.openFirst(t)
	b.untilMessage(t, "Welcome, Ada!")
	b.Until(t, `document.title === "Semel chat"`)
	s.say(t, grace, group, "m1", "Good <script>alert(1)</script> morning https://example.com/a?b=c.").want(t, http.StatusCreated, "")
	b.untilMessage(t, "Good <script>alert(1)</script> morning https://example.com/a?b=c.")
	b.Until(t, `document.querySelector("#messages a").href === "https://example.com/a?b=c"`)
	s.ask(t, grace, "PATCH", path+"/messages/3", `{"text":"Good evening"}`).want(t, http.StatusOK, "")
	b.untilMessage(t, "Good evening")
	s.ask(t, grace, "DELETE", path+"/messages/3", "").want(t, http.StatusOK, "")
	b.untilMessage(t, "Message deleted")
	s.ask(t, grace, "POST", path+"/members", `{"member_names":["alan"]}`).want(t, http.StatusOK, "")
	b.Until(t, `document.getElementById("talk-people").textContent.includes("Alan")`)
	s.ask(t, grace, "PATCH", path, `{"name":"Readers"}`).want(t, http.StatusOK, "")
	b.untilOpen(t, "Readers")
	b.Until(t, `document.getElementById("message-text").placeholder === "Message to Readers"`)
	b.Do(t, chromedp.SendKeys(css("#message-text"), "Hello there"+kb.Enter))
	b.untilMessage(t, "Hello there")
	b.Shoot(t, "conversation")
	s.ask(t, grace, "PUT", path+"/read", `{"seq":5}`).want(t, http.StatusOK, "")
	b.Until(t, `document.querySelector("#messages li.mine small").textContent.includes("read by 1")`)
	s.ask(t, grace, "DELETE", path+fmt.Sprintf("/members/%d", ada.ID), "").want(t, http.StatusNoContent, "")
	b.Do(t, chromedp.WaitVisible(css("#no-groups")))
	b.Until(t, `document.getElementById("talk").hidden`)
}

// TestPageChangesAGroup: the owner adds a member by name, renames the group, edits and deletes
// messages, and leaves.
func TestPageChangesAGroup(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	grace := s.signIn(t, "Grace")
	s.signIn(t, "Alan")
	b.signIn(t, s.base, "Ada")
	b.create(t, "Nobody's", "Nemo")
	b.Until(t, `document.getElementById("create-status").textContent === "There is no user Nemo. Nothing was created."`)
	b.Until(t, `document.getElementById("create-name").value === "Nobody's"`) // it can be corrected
	b.Shoot(t, "refused")
	b.Do(t, chromedp.SetValue(css("#create-members"), "grace"), chromedp.Click(css("#create-once")))
	b.untilOpen(t, "Nobody's")
	b.Until(t, `document.activeElement.id === "message-text"`)
	b.Do(t, chromedp.Click(css("#show-details")), chromedp.WaitVisible(css("#add-names")),
		chromedp.SendKeys(css("#add-names"), "Al"))
	b.Until(t, `document.querySelector("#people option")?.value === "Alan"`) // names are suggested
	b.Do(t, chromedp.SendKeys(css("#add-names"), "an"), chromedp.Click(css("#add-button")))
	b.Until(t, `document.querySelectorAll("#details-members li").length === 3`)
	b.Shoot(t, "details")
	b.Do(t, chromedp.SetValue(css("#rename-name"), "Everybody's"), chromedp.Click(css("#rename-button")))
	b.untilOpen(t, "Everybody's")
	b.Do(t, chromedp.Click(css(`#details [data-close]`)))
	b.write(t, "Frist")
	b.untilMessage(t, "Frist")
	b.Do(t, chromedp.SendKeys(css("#message-text"), kb.ArrowUp))
	b.Until(t, `document.getElementById("message-text").value === "Frist"`)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`document.getElementById("message-text").select()`))
	b.write(t, "First")
	b.untilMessage(t, "First")
	b.Until(t, `document.querySelector("#messages li.mine small").textContent.includes("edited")`)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#messages li.mine .actions button")].find((b) => b.textContent === "Delete").click()`),
		chromedp.WaitVisible(css("#confirm-yes")), chromedp.Click(css("#confirm-yes")))
	b.untilMessage(t, "Message deleted")
	b.Do(t, chromedp.Click(css("#show-details")), chromedp.WaitVisible(css("#leave")), chromedp.Click(css("#leave")),
		chromedp.WaitVisible(css("#confirm-yes")), chromedp.Click(css("#confirm-yes")), chromedp.WaitVisible(css("#no-groups")))
	if groups := s.groupsOf(t, grace); len(groups) != 1 || groups[0]["owner_id"] != float64(grace.ID) {
		t.Errorf("Grace has %v, want one group that is hers", groups)
	}
}

// TestPageShowsPeople: two members see that the other one is online and types, and that the other
// one is gone.
func TestPageShowsPeople(t *testing.T) {
	t.Parallel()
	fullOnly(t) // presence ends after some seconds
	b, other := browse(t), browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	ada, grace := b.signIn(t, s.base, "Ada"), other.signIn(t, s.base, "Grace")
	s.send(t, creation(ada, "k", "Talk", grace.ID)).want(t, http.StatusCreated, "")
	for _, each := range []*browser{b, other} {
		each.untilGroups(t, "Talk")
		each.openFirst(t)
		each.untilOpen(t, "Talk")
		each.Until(t, `document.getElementById("talk-people").textContent.endsWith("· 1 online")`)
	}
	// The page shows it for 5 seconds, which may end before Until looks.
	b.Do(t, chromedp.Evaluate[chromedp.Void](`new MutationObserver(([{ target }]) => { window.typed ??= target.textContent; })
		.observe(document.getElementById("typing"), { childList: true })`))
	other.Do(t, chromedp.SendKeys(css("#message-text"), "hm"))
	b.Until(t, `window.typed === "Grace is typing …"`)
	b.Shoot(t, "typing")
	other.Do(t, chromedp.Navigate("about:blank"))
	b.Until(t, `!document.getElementById("talk-people").textContent.includes("online")`)
}

// TestPageIgnoresOldAnswers: the list of groups arrives after a message that is newer than the list.
func TestPageIgnoresOldAnswers(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	late := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/v1/groups" {
				next.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			hold.pass()
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}}
	s := serveLocal(t, late, newFiles(t, inline).args(time.Minute)...)
	ada, grace := b.signIn(t, s.base, "Ada"), s.signIn(t, "Grace")
	group := s.newGroup(t, grace, "Talk", ada.ID)
	const count = `document.querySelector("#groups .count")?.textContent`
	b.Until(t, count+` === "2 unread"`) // a welcome for each member
	hold.armed.Store(true)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`import("/static/model.js").then(async ({ loadGroups }) => { await loadGroups(); window.listed = true; }); 0`))
	<-hold.arrived
	s.say(t, grace, group, "m", "later").want(t, http.StatusCreated, "")
	b.Until(t, count+` === "3 unread"`)
	close(hold.open)
	b.Until(t, `window.listed === true`)
	check.Equal(t, chromium.Read[string](t, b.Tab, count), "3 unread", "the count after the old list")
}
