package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/realtest/chromium"
)

// TestPageSendsFiftyDuplicates requests one group 50 times.
func TestPageSendsFiftyDuplicates(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	u := b.signIn(t, s.base, "Ada")
	b.storm(t, s.base, "Engine room")
	b.Until(t, allAnswered)
	b.Shoot(t, "retries")
	b.phone(t)
	b.wantNarrow(t)
	b.Shoot(t, "retries-phone")
	if diff := cmp.Diff(map[string]int{"created": 1, "replayed": 49}, b.tiles(t)); diff != "" {
		t.Errorf("tiles (-want +got):\n%s", diff)
	}
	if got := [3]string{b.count(t, "group-count"), b.count(t, "group-count-before"), b.count(t, "group-count-answers")}; got != [3]string{"1", "0", "1"} {
		t.Errorf("groups, before, in the answers: %v, want 1, 0, 1", got)
	}
	if n := len(s.groupsOf(t, u)); n != 1 {
		t.Errorf("%d groups on the server, want 1", n)
	}
	b.untilNoAttempt(t)
}

// wantNarrow checks that the page is not wider than a phone.
func (b *browser) wantNarrow(t *testing.T) {
	t.Helper()
	if chromium.Read[bool](t, b.Tab, `document.documentElement.scrollWidth > 390`) {
		t.Error("the page is wider than a phone")
	}
}

// TestPageKeepsItsKey reloads the page while its creation is held: the page continues with
// the same key.
func TestPageKeepsItsKey(t *testing.T) {
	t.Parallel()
	b, hold := browse(t), newBarrier()
	f := newFiles(t, leased)
	s := serveLocal(t, hold.at(leased), f.args(time.Minute)...)
	u := b.signIn(t, s.base, "Ada")
	hold.armed.Store(true)
	b.storm(t, s.base, "Night shift")
	hold.await(t)
	b.Until(t, someWaiting)
	b.Shoot(t, "retries-waiting")
	before := b.attempts(t)
	b.Do(t, chromedp.Reload(), chromedp.WaitVisible(css("#create-50")))
	if after := b.attempts(t); len(before) != 1 || !slices.Equal(before, after) {
		t.Errorf("the attempts were %v, after a reload %v", before, after)
	}
	close(hold.open)
	b.Until(t, allAnswered)
	got := b.tiles(t)
	if got["created"]+got["replayed"] != 50 || got["created"] > 1 {
		t.Errorf("tiles %v, want 50 created or replayed, at most one created", got)
	}
	if n := creations(t, f.openDomain(t), u, before[0].Key); n != 1 {
		t.Errorf("%d creations, want 1", n)
	}
	b.untilNoAttempt(t)
}

// TestPageAddsOneUser clicks twice on the button that creates an account; then the user signs
// out, and in again on a second device.
func TestPageAddsOneUser(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	b.Do(t,
		chromedp.Navigate(s.base), chromedp.WaitVisible(css("#sign-in-name")),
		chromedp.SendKeys(css("#sign-in-name"), "Dora"), chromedp.SendKeys(css("#sign-in-password"), password),
	)
	b.Shoot(t, "sign-in")
	b.Do(t, chromedp.DoubleClick(css("#sign-up-button")), chromedp.WaitVisible(css("#new-group")))
	b.Until(t, `document.activeElement.id === "new-group"`)
	b.Shoot(t, "empty")
	b.create(t, "Crew", "")
	b.untilGroups(t, "Crew")
	b.Do(t, chromedp.Click(css("#sign-out")), chromedp.WaitVisible(css("#sign-in-name")))
	b.logIn(t, s.base, "dora")
	b.untilGroups(t, "Crew")
	dora := s.logIn(t, "Dora", "test")
	if n := len(s.groupsOf(t, dora)); n != 1 || dora.ID != 1 {
		t.Errorf("user %d with %d groups, want user 1 with 1", dora.ID, n)
	}
}

// TestPageShowsChangesOfOthers: an invitation, messages, their edits and deletions, new
// members and a new name are seen without a reload.
func TestPageShowsChangesOfOthers(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	grace := s.signIn(t, "Grace")
	s.signIn(t, "Alan")
	ada := b.signIn(t, s.base, "Ada")
	b.Do(t, chromedp.WaitVisible(css("#no-groups")))
	group := s.send(t, creation(grace, "k", `Readers <b>& "writers"`, ada.ID)).want(t, http.StatusCreated, "").value(t)["id"].(string)
	path := "/v1/groups/" + group
	b.untilGroups(t, `Readers <b>& "writers"`)
	b.Until(t, `document.querySelector("#groups .count")?.textContent === "2 unread"`) // a welcome for each member
	b.Until(t, `document.title === "(2) Semel chat"`)
	b.Do(t, chromedp.Click(css("#groups a")))
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
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	grace := s.signIn(t, "Grace")
	s.signIn(t, "Alan")
	b.signIn(t, s.base, "Ada")
	b.create(t, "Nobody's", "Nemo")
	b.Until(t, `document.getElementById("create-status").textContent.includes("Nemo")`)
	b.Until(t, `document.getElementById("create-name").value === "Nobody's"`) // it can be corrected
	b.Shoot(t, "refused")
	b.Do(t, chromedp.SetValue(css("#create-members"), "grace"), chromedp.Click(css("#create-once")))
	b.untilOpen(t, "Nobody's")
	b.Until(t, `document.activeElement.id === "message-text"`)
	b.Do(t, chromedp.Click(css("#show-details")), chromedp.WaitVisible(css("#add-names")),
		chromedp.SendKeys(css("#add-names"), "Alan"), chromedp.Click(css("#add-button")))
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

// TestPageScrolls: a long conversation opens at its end, and the newest message and the
// composer are in view, on a desktop and on a phone. Earlier messages are loaded when the user
// scrolls up, and the view stays where it was.
func TestPageScrolls(t *testing.T) {
	t.Parallel()
	b := browse(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	ada := b.signIn(t, s.base, "Ada")
	group := s.send(t, creation(ada, "k", "Long")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	const sent = 120
	for i := range sent {
		s.say(t, ada, group, fmt.Sprint("m", i), fmt.Sprintf("Message %d of a long talk", i)).want(t, http.StatusCreated, "")
	}
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
	b.Do(t, chromedp.Evaluate[chromedp.Void](`document.getElementById("scroller").scrollTop = 0`))
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
	s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	ada := b.signIn(t, s.base, "Ada")
	group := s.send(t, creation(ada, "k", "Notes")).want(t, http.StatusCreated, "").value(t)["id"].(string)
	address := s.base + "/#/g/" + group
	b.Do(t, chromedp.Navigate(address))
	b.untilOpen(t, "Notes")
	second := &browser{b.Another(t)}
	second.Do(t, chromedp.Navigate(address))
	second.untilOpen(t, "Notes")
	s.stop()
	b.Do(t, chromedp.WaitVisible(css("#offline")))
	b.write(t, "from the first tab")
	second.write(t, "from the second tab")
	b.Until(t, `document.querySelectorAll("#messages li[data-state=waiting]").length > 0`)
	second.Do(t, chromedp.SendKeys(css("#message-text"), "a draft"))
	b.Shoot(t, "offline")
	if kept := b.attempts(t); len(kept) != 2 {
		t.Fatalf("%v are stored, want both messages", kept)
	}
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
	var texts []string
	for _, m := range s.messagesIn(t, ada, group) {
		if m.AuthorID == ada.ID {
			texts = append(texts, m.Text)
		}
	}
	slices.Sort(texts)
	if want := []string{"from the first tab", "from the second tab"}; !slices.Equal(texts, want) {
		t.Errorf("the group has %q, want %q", texts, want)
	}
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
	b.Do(t, chromedp.WaitVisible(css("#sign-in-name")))
	b.logInAgain(t, "Ada")
	b.untilOpen(t, "Notes")
	b.Until(t, `document.getElementById("message-text").value === "unfinished"`)
}

// logInAgain signs in on the page that is open.
func (b *browser) logInAgain(t *testing.T, name string) {
	t.Helper()
	b.Do(t, chromedp.SendKeys(css("#sign-in-name"), name), chromedp.SendKeys(css("#sign-in-password"), password),
		chromedp.Click(css("#sign-in-button")), chromedp.WaitVisible(css("#new-group")))
}

// TestPageWithoutWebSockets: where WebSockets cannot be opened, server-sent events deliver.
func TestPageWithoutWebSockets(t *testing.T) {
	t.Parallel()
	b := browse(t)
	streams := make(chan struct{}, 100)
	blocked := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/ws" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if r.URL.Path == "/v1/events" {
				streams <- struct{}{}
			}
			next.ServeHTTP(w, r)
		})
	}}
	s := serveLocal(t, blocked, newFiles(t, inline).args(time.Minute)...)
	ada, grace := b.signIn(t, s.base, "Ada"), s.signIn(t, "Grace")
	<-streams
	group := s.send(t, creation(grace, "k", "Readers", ada.ID)).want(t, http.StatusCreated, "").value(t)["id"].(string)
	b.untilGroups(t, "Readers")
	b.Until(t, `document.querySelector("#groups .count")?.textContent === "2 unread"`) // both welcomes
	b.Do(t, chromedp.Click(css("#groups a")))
	b.untilOpen(t, "Readers")
	s.say(t, grace, group, "m", "Good morning").want(t, http.StatusCreated, "")
	b.untilMessage(t, "Good morning")
}
