//go:build !race

package server_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/examples/chat/server"
)

// TestPageAddsOneUser clicks twice on the button that creates an account; then the user signs
// out, and in again on a second device.
func TestPageAddsOneUser(t *testing.T) {
	t.Parallel()
	b, s := servePage(t, server.Hooks{})
	b.Do(t,
		chromedp.Navigate(s.base), chromedp.WaitVisible(css("#sign-in-name")),
		chromedp.SendKeys(css("#sign-in-name"), "Dora"), chromedp.SendKeys(css("#sign-in-password"), password),
	)
	b.Shoot(t, "sign-in")
	// Both clicks come before an answer: a later one would hit what the page shows then.
	b.Do(t, chromedp.Evaluate[chromedp.Void](`for (let i = 0; i < 2; i++) document.getElementById("sign-up-button").click()`))
	b.untilConnected(t)
	b.Until(t, `document.activeElement.id === "new-group"`)
	b.Shoot(t, "empty")
	b.create(t, "Crew", "")
	b.untilGroups(t, "Crew")
	b.Do(t, chromedp.Click(css("#sign-out")), chromedp.WaitVisible(css("#sign-in-name")))
	b.logIn(t, "dora")
	b.untilGroups(t, "Crew")
	dora := s.logIn(t, "Dora", "test")
	if n := len(s.groupsOf(t, dora)); n != 1 || dora.ID != 1 {
		t.Errorf("user %d with %d groups, want user 1 with 1", dora.ID, n)
	}
}

// TestPageIsPushedToWhileSigningOut: what the server pushes between the click and the next page, here
// because it has not ended the session yet, throws no exception.
func TestPageIsPushedToWhileSigningOut(t *testing.T) {
	t.Parallel()
	b := browse(t)
	var signsOut atomic.Bool
	leaving, pushed := make(chan struct{}), make(chan struct{})
	slow := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/v1/sessions/current" && signsOut.Load():
				w.WriteHeader(http.StatusNoContent)
				return
			case r.URL.Path == "/" && signsOut.Load():
				close(leaving)
				<-pushed
			case r.URL.Path == "/pushed":
				close(pushed)
			}
			next.ServeHTTP(w, r)
		})
	}}
	s := serveLocal(t, slow, newFiles(t, inline).args(time.Minute)...)
	dora := b.signIn(t, s.base, "Dora")
	b.create(t, "Crew", "")
	b.untilOpen(t, "Crew")
	b.write(t, "Hello")
	b.untilMessage(t, "Hello")
	// The browser cannot be asked during a navigation, so the page reports what it shows.
	b.Do(t, chromedp.Evaluate[chromedp.Void](`
		addEventListener("error", () => fetch("/pushed"));
		new MutationObserver((_, observer) => {
			if (!document.getElementById("messages").textContent.includes("late")) return;
			observer.disconnect();
			fetch("/pushed");
		}).observe(document.getElementById("messages"), { childList: true, subtree: true });`))
	signsOut.Store(true)
	b.Do(t, chromedp.Click(css("#sign-out")))
	<-leaving
	s.say(t, dora, s.groupsOf(t, dora)[0]["id"].(string), "late", "late").want(t, http.StatusCreated, "")
	b.Do(t, chromedp.WaitVisible(css("#sign-in-name")))
}

// TestPageKeepsItsSignUp reloads the page while the answer of a sign-up is missing. The second attempt
// has the key of the first, so the user is signed in, and the name is not taken.
func TestPageKeepsItsSignUp(t *testing.T) {
	t.Parallel()
	b := browse(t)
	var lost atomic.Bool
	added, keys := make(chan struct{}), make(chan string, 10)
	loses := server.Hooks{Edge: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/users" {
				keys <- r.Header.Get("Idempotency-Key")
				if lost.CompareAndSwap(false, true) {
					next.ServeHTTP(httptest.NewRecorder(), r)
					close(added)
					<-r.Context().Done()
					panic(http.ErrAbortHandler)
				}
			}
			next.ServeHTTP(w, r)
		})
	}}
	s := serveLocal(t, loses, newFiles(t, inline).args(time.Minute)...)
	b.Do(t, chromedp.Navigate(s.base))
	b.credentials(t, "Dora", "#sign-up-button")
	<-added
	b.Do(t, chromedp.Reload())
	b.credentials(t, "Dora", "#sign-up-button")
	b.Do(t, chromedp.WaitVisible(css("#new-group")))
	if first, second := <-keys, <-keys; first != second || first == "" {
		t.Errorf("the keys were %s and %s, want the same", first, second)
	}
	b.Until(t, `!Object.keys(sessionStorage).some((name) => name.includes("sign-up"))`)
}
