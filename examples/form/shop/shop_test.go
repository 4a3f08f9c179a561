package shop_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/examples/form/shop"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/realtest/chromium"
	"github.com/semelgo/semel/semelhttp"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// submit is a POST that the shop has answered.
type submit struct {
	status   int
	replayed bool
}

// visit is a running shop and a visitor's browser.
type visit struct {
	*chromium.Tab
	base string

	mu      sync.Mutex
	submits []submit
	// crowd holds responses back until there are this many.
	crowd   int
	waiting int
	full    chan struct{}
}

func newVisit(t *testing.T) *visit {
	t.Helper()
	v := &visit{full: make(chan struct{})}
	s := check.Must(shop.Open(t.Context(), filepath.Join(t.TempDir(), "form.db")))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		check.NoError(t, s.Close(ctx), "Close")
	})
	inner := s.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			inner.ServeHTTP(w, r)
			return
		}
		seen := &statusWriter{ResponseWriter: w}
		inner.ServeHTTP(seen, r)
		v.gather() // the server sends so small a response when its handler returns
		v.mu.Lock()
		defer v.mu.Unlock()
		v.submits = append(v.submits, submit{seen.status, w.Header().Get(semelhttp.HeaderReplayed) == "true"})
	}))
	t.Cleanup(server.Close)
	v.base = server.URL
	v.Tab = chromium.Open(t)
	return v
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// gather waits until as many submits have a response as the test has asked for.
func (v *visit) gather() {
	v.mu.Lock()
	if v.waiting++; v.waiting == v.crowd {
		close(v.full)
	}
	held := v.waiting <= v.crowd
	v.mu.Unlock()
	if held {
		<-v.full
	}
}

// hold makes the responses of the next n submits wait for each other.
func (v *visit) hold(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.crowd, v.waiting, v.full = n, 0, make(chan struct{})
}

// ready reports whether n of the held submits have a response.
func (v *visit) ready(n int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.waiting >= n
}

// want waits until the shop has answered the submits, and compares them in any order.
func (v *visit) want(t *testing.T, want ...submit) {
	t.Helper()
	var got []submit
	realtest.Poll(t, "the submits of the browser", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		got = slices.Clone(v.submits)
		return len(got) >= len(want)
	})
	for _, w := range want {
		i := slices.Index(got, w)
		if i < 0 {
			t.Fatalf("the submits are %+v, want %+v", got, want)
		}
		got = slices.Delete(got, i, i+1)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.submits = nil
}

var (
	tea    = chromedp.CSS(`input[name="tea"]`)
	button = chromedp.CSS("button")
	placed = chromedp.CSS("#order")
)

// open opens the form in a tab and fills it.
func (v *visit) open(t *testing.T, tab *chromium.Tab, name string) {
	t.Helper()
	tab.Do(t, chromedp.Navigate(v.base), chromedp.WaitVisible(button), chromedp.SendKeys(tea, name))
}

// wantOrder waits for the page of an order, and compares its number and the number of all
// orders of the visitor.
func wantOrder(t *testing.T, tab *chromium.Tab, order, all string) {
	t.Helper()
	tab.Do(t, chromedp.WaitVisible(placed))
	got := chromium.Read[[]string](t, tab, `["order", "orders"].map(id => document.getElementById(id).textContent)`)
	if !slices.Equal(got, []string{order, all}) {
		t.Errorf("the page shows order %s of %s, want %s of %s", got[0], got[1], order, all)
	}
}

func token(t *testing.T, tab *chromium.Tab) string {
	t.Helper()
	return chromium.Read[string](t, tab, `document.querySelector('input[type="hidden"]').value`)
}

// TestDoubleClick: the browser drops its first request, which has placed the order, and
// shows the answer to its second one, which is the same order.
func TestDoubleClick(t *testing.T) {
	v := newVisit(t)
	v.open(t, v.Tab, "Assam")
	v.hold(2)
	at := chromium.Read[[]float64](t, v.Tab, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector("button").getBoundingClientRect())`)
	v.Do(t, chromedp.MouseClickXY(at[0], at[1]))
	realtest.Poll(t, "the first submit", func() bool { return v.ready(1) })
	v.Do(t, chromedp.MouseClickXY(at[0], at[1]))
	wantOrder(t, v.Tab, "1", "1")
	v.want(t, submit{http.StatusSeeOther, false}, submit{http.StatusSeeOther, true})
}

// TestBackButton: the form that the browser shows again is the same one. Sent again, it
// leads to the same order; changed, it is refused; and its link opens a new form.
func TestBackButton(t *testing.T) {
	v := newVisit(t)
	v.open(t, v.Tab, "Assam")
	v.Shoot(t, "form")
	used := token(t, v.Tab)
	v.Do(t, chromedp.Click(button))
	wantOrder(t, v.Tab, "1", "1")
	v.Shoot(t, "order")
	v.Do(t, chromedp.NavigateBack(), chromedp.WaitVisible(button))
	check.Equal(t, token(t, v.Tab), used, "the back button leads to a form with another token")
	v.Do(t, chromedp.Click(button))
	wantOrder(t, v.Tab, "1", "1")
	v.want(t, submit{http.StatusSeeOther, false}, submit{http.StatusSeeOther, true})
	v.Do(t, chromedp.NavigateBack(), chromedp.WaitVisible(button), chromedp.SendKeys(tea, " and mint"), chromedp.Click(button))
	v.Do(t, chromedp.WaitVisible(chromedp.CSS("#form_changed")))
	v.Shoot(t, "changed")
	v.Do(t, chromedp.EmulateViewport(390, 844))
	v.Shoot(t, "changed-phone")
	v.want(t, submit{http.StatusConflict, false})
	v.Do(t, chromedp.Click(chromedp.CSS("a")), chromedp.WaitVisible(button), chromedp.SendKeys(tea, "Mint"))
	v.Shoot(t, "form-phone")
	v.Do(t, chromedp.Click(button))
	wantOrder(t, v.Tab, "2", "2")
	v.Shoot(t, "order-phone")
}

// TestReload: a form that was reloaded has another token. A page that answers a submit sends
// it again if it is reloaded: a refused form stays open, and an accepted one has its first
// answer.
func TestReload(t *testing.T) {
	v := newVisit(t)
	v.open(t, v.Tab, "")
	first := token(t, v.Tab)
	v.Do(t, chromedp.Reload(), chromedp.WaitVisible(button))
	second := token(t, v.Tab)
	if second == first {
		t.Error("the form that was reloaded has the same token")
	}
	v.Do(t, chromedp.Click(button), chromedp.WaitVisible(chromedp.CSS(".wrong")))
	v.Shoot(t, "refused")
	v.Do(t, chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(".wrong")))
	v.want(t, submit{http.StatusUnprocessableEntity, false}, submit{http.StatusUnprocessableEntity, false})
	check.Equal(t, token(t, v.Tab), second, "the form that was refused has another token")
	v.Do(t, chromedp.SendKeys(tea, "Assam"), chromedp.Click(button))
	wantOrder(t, v.Tab, "1", "1")
	v.Do(t, chromedp.Reload())
	wantOrder(t, v.Tab, "1", "1")
	v.want(t, submit{http.StatusSeeOther, false})
}

// TestTwoTabs: two forms are two orders, in the order in which they are sent.
func TestTwoTabs(t *testing.T) {
	v := newVisit(t)
	v.open(t, v.Tab, "Assam")
	other := v.Another(t)
	v.open(t, other, "Mint")
	other.Do(t, chromedp.Click(button))
	wantOrder(t, other, "1", "1")
	v.Do(t, chromedp.Click(button))
	wantOrder(t, v.Tab, "2", "2")
	v.want(t, submit{http.StatusSeeOther, false}, submit{http.StatusSeeOther, false})
}
