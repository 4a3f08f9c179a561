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
	fill := []chromedp.Action[chromedp.Void]{
		chromedp.WaitVisible(css("#sign-in-name")), chromedp.SetValue(css("#sign-in-name"), "Dora"),
		chromedp.SetValue(css("#sign-in-password"), password), chromedp.Click(css("#sign-up-button")),
	}
	b.Do(t, chromedp.Navigate(s.base))
	b.Do(t, fill...)
	<-added
	b.Do(t, chromedp.Reload())
	b.Do(t, fill...)
	b.Do(t, chromedp.WaitVisible(css("#new-group")))
	if first, second := <-keys, <-keys; first != second || first == "" {
		t.Errorf("the keys were %s and %s, want the same", first, second)
	}
	b.Until(t, `!Object.keys(sessionStorage).some((name) => name.includes("sign-up"))`)
}
