package semelhttp_test

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/semelhttp"
)

// cart is the payload of the tests' tokens.
type cart struct{ ID string }

// shopForm is a handler behind Form or FormTx.
type shopForm struct {
	*testEngine
	purpose *onetime.Purpose[cart]
	server  *httptest.Server
	runs    atomic.Int32
	// respond is the handler's response after its run n.
	respond func(w http.ResponseWriter, r *http.Request, n int32)
}

// onEveryForm runs test behind both entry points.
func onEveryForm(t *testing.T, o semelhttp.FormOptions, test func(t *testing.T, f *shopForm)) {
	t.Helper()
	o.ScopeFunc = byUser
	for _, name := range []string{"Form", "FormTx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &shopForm{testEngine: newTestEngine(t, semel.Options{}), purpose: onetime.Define[cart]("place_order", onetime.Options{})}
			wrap, err := semelhttp.Form(f, f.purpose, o)
			if name == "FormTx" {
				wrap, err = semelhttp.FormTx(f.Engine, f.purpose, o)
			}
			check.Require(t, err)
			f.respond = func(w http.ResponseWriter, r *http.Request, n int32) {
				c, err := f.purpose.Payload(r.Context())
				w.Header().Set("Location", fmt.Sprintf("/orders/%s?run=%d&error=%v", c.ID, n, err))
				w.Header().Set("Set-Cookie", "seen=1")
				w.WriteHeader(http.StatusSeeOther)
			}
			f.server = httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, "the form")
					return
				}
				f.respond(w, r, f.runs.Add(1))
			})))
			t.Cleanup(f.server.Close)
			test(t, f)
		})
	}
}

func (f *shopForm) issue(t *testing.T, user string) string {
	t.Helper()
	token := check.Must(f.purpose.Issue(t.Context(), f, semel.ScopeOf(user), time.Hour, cart{ID: "c1"}))(t)
	return token
}

// page is a response.
type page struct {
	status   int
	location string
	body     string
	replayed bool
	header   http.Header
}

// send sends a body as a user, and does not follow redirects.
func (f *shopForm) send(t *testing.T, user, mediaType, body string, headers ...string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.server.URL+"/orders?step=2", strings.NewReader(body))
	check.Require(t, err)
	r.Header.Set("Content-Type", mediaType)
	r.Header.Set("X-User", user)
	for _, token := range headers {
		r.Header.Add(semelhttp.HeaderToken, token)
	}
	resp, err := f.server.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return page{}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	check.NoError(t, err)
	return page{
		resp.StatusCode, resp.Header.Get("Location"), string(text),
		resp.Header.Get(semelhttp.HeaderReplayed) == "true", resp.Header,
	}
}

const urlencoded = "application/x-www-form-urlencoded"

// submit sends the form with a token in its hidden field.
func (f *shopForm) submit(t *testing.T, user, token, name string) page {
	t.Helper()
	return f.send(t, user, urlencoded, url.Values{"name": {name}, semelhttp.DefaultTokenField: {token}}.Encode())
}

// wantPage fails the test unless p is a page of the package about a problem.
func wantPage(t *testing.T, p page, status int, code string) {
	t.Helper()
	kind := p.header.Get("Content-Type")
	if p.status != status || !strings.Contains(p.body, code) || !strings.HasPrefix(kind, "text/html") || p.replayed {
		t.Errorf("got %d %s, replayed %v, want a page with %d %s:\n%s", p.status, kind, p.replayed, status, code, p.body)
	}
}

// TestFormRunsOncePerToken: a double click, a reload and the back button get the first
// response; another token is another operation.
func TestFormRunsOncePerToken(t *testing.T) {
	t.Parallel()
	onEveryForm(t, semelhttp.FormOptions{}, func(t *testing.T, f *shopForm) {
		token := f.issue(t, "ann")
		const clicks = 20
		pages := make([]page, clicks)
		var all sync.WaitGroup
		for i := range clicks {
			all.Go(func() { pages[i] = f.submit(t, "ann", token, "Ann") })
		}
		all.Wait()
		first := 0
		for _, p := range pages {
			if p.status != http.StatusSeeOther || p.location != "/orders/c1?run=1&error=<nil>" {
				t.Errorf("got %d, %q", p.status, p.location)
			}
			if !p.replayed {
				first++
			}
		}
		if first != 1 || f.runs.Load() != 1 {
			t.Errorf("%d first responses and %d runs, want one", first, f.runs.Load())
		}
		if p := f.submit(t, "ann", token, "Ann"); !p.replayed || p.header.Get("Set-Cookie") != "" {
			t.Errorf("a reload = %+v, want a replay without Set-Cookie", p)
		}
		if p := f.submit(t, "ann", f.issue(t, "ann"), "Ann"); p.replayed || p.location != "/orders/c1?run=2&error=<nil>" {
			t.Errorf("the form of another tab = %+v, want another run", p)
		}
	})
}

// TestFormRefusesOtherTokens: the handler runs for none of them, and the pages do not tell
// another user's token from an unknown one.
func TestFormRefusesOtherTokens(t *testing.T) {
	t.Parallel()
	onEveryForm(t, semelhttp.FormOptions{MaxBody: 4096}, func(t *testing.T, f *shopForm) {
		token := f.issue(t, "ann")
		field := semelhttp.DefaultTokenField + "="
		wantPage(t, f.send(t, "ann", urlencoded, "name=Ann"), 400, "token_missing")
		wantPage(t, f.send(t, "ann", urlencoded, field), 400, "token_missing")
		wantPage(t, f.send(t, "ann", urlencoded, field+token+"&"+field+token), 400, "token_missing")
		wantPage(t, f.send(t, "ann", urlencoded, field+token, token), 400, "token_missing")
		wantPage(t, f.send(t, "ann", urlencoded, "x=%zz&"+field+token), 400, "body_invalid")
		wantPage(t, f.send(t, "ann", "multipart/form-data; boundary=b", field+token), 400, "token_missing")
		wantPage(t, f.send(t, "ann", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\ny"), 400, "body_invalid")
		wantPage(t, f.send(t, "ann", "application/json", `{"one_time_token":"`+token+`"}`), 400, "token_missing")
		wantPage(t, f.send(t, "ann", urlencoded, field+token+"&x="+strings.Repeat("x", 4096)), 413, "body_too_large")
		wantPage(t, f.send(t, "ann", urlencoded, field+strings.Repeat("x", 3000)), 403, "token_unknown")
		wantPage(t, f.send(t, "", urlencoded, field+token), 401, "unauthenticated")
		bob, unknown := f.submit(t, "bob", token, "Bob"), f.submit(t, "bob", strings.Repeat("A", 43), "Bob")
		wantPage(t, bob, 403, "token_unknown")
		if bob.body != unknown.body {
			t.Errorf("another user's token:\n%s\nan unknown token:\n%s", bob.body, unknown.body)
		}
		f.ahead.Store(int64(time.Hour))
		wantPage(t, f.submit(t, "ann", token, "Ann"), 410, "token_expired")
		check.Equal(t, f.runs.Load(), 0, "runs")
	})
}

// TestFormComparesContents: a used token with other contents is refused. The
// boundary of a multipart body does not matter.
func TestFormComparesContents(t *testing.T) {
	t.Parallel()
	onEveryForm(t, semelhttp.FormOptions{}, func(t *testing.T, f *shopForm) {
		token := f.issue(t, "ann")
		f.submit(t, "ann", token, "Ann")
		wantPage(t, f.submit(t, "ann", token, "Anna"), 409, "form_changed")

		token = f.issue(t, "ann")
		upload := func(file, content string) page {
			var b bytes.Buffer
			w := multipart.NewWriter(&b) // with a random boundary
			_ = w.WriteField(semelhttp.DefaultTokenField, token)
			part, _ := w.CreateFormFile("photo", file)
			_, _ = io.WriteString(part, content)
			_ = w.Close()
			return f.send(t, "ann", w.FormDataContentType(), b.String())
		}
		if p := upload("a.png", "pixels"); p.status != http.StatusSeeOther || p.replayed {
			t.Errorf("an upload = %+v, want a first run", p)
		}
		if p := upload("a.png", "pixels"); p.status != http.StatusSeeOther || !p.replayed {
			t.Errorf("the same upload = %+v, want a replay", p)
		}
		wantPage(t, upload("a.png", "other pixels"), 409, "form_changed")
		wantPage(t, upload("b.png", "pixels"), 409, "form_changed")

		token = f.issue(t, "ann")
		for i, body := range []string{`{"n":1}`, `{"n":1}`} {
			if p := f.send(t, "ann", "application/json", body, token); p.status != http.StatusSeeOther || p.replayed != (i == 1) {
				t.Errorf("a script's submit %d = %+v", i, p)
			}
		}
		wantPage(t, f.send(t, "ann", "application/json", `{"n":2}`, token), 409, "form_changed")
	})
}

// TestFormStaysOpenAfterARefusal: a handler that refuses the contents shows the form again,
// and the token, with other contents, is accepted.
func TestFormStaysOpenAfterARefusal(t *testing.T) {
	t.Parallel()
	onEveryForm(t, semelhttp.FormOptions{}, func(t *testing.T, f *shopForm) {
		placed := f.respond
		f.respond = func(w http.ResponseWriter, r *http.Request, n int32) {
			if r.PostFormValue("name") == "" {
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, "again: "+r.PostFormValue(semelhttp.DefaultTokenField))
				return
			}
			placed(w, r, n)
		}
		token := f.issue(t, "ann")
		for range 2 {
			if p := f.submit(t, "ann", token, ""); p.status != 422 || p.body != "again: "+token || p.replayed {
				t.Errorf("a refused form = %+v, want the handler's page", p)
			}
		}
		if p := f.submit(t, "ann", token, "Ann"); p.status != http.StatusSeeOther || p.replayed {
			t.Errorf("the corrected form = %+v, want a first run", p)
		}
		if p := f.submit(t, "ann", token, "Ann"); p.status != http.StatusSeeOther || !p.replayed {
			t.Errorf("the corrected form, again = %+v, want a replay", p)
		}
	})
}

// TestFormAfterAServerError: in a transaction everything was rolled back, and the token
// can be used again; otherwise the effect is unknown.
func TestFormAfterAServerError(t *testing.T) {
	t.Parallel()
	onEveryForm(t, semelhttp.FormOptions{}, func(t *testing.T, f *shopForm) {
		placed := f.respond
		f.respond = func(w http.ResponseWriter, r *http.Request, n int32) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			placed(w, r, n)
		}
		token := f.issue(t, "ann")
		first, second := f.submit(t, "ann", token, "Ann"), f.submit(t, "ann", token, "Ann")
		if strings.HasSuffix(t.Name(), "/FormTx") {
			if first.status != 500 || second.status != http.StatusSeeOther || second.replayed {
				t.Errorf("got %d and then %d, want 500 and a first run", first.status, second.status)
			}
			return
		}
		wantPage(t, first, 503, "outcome_unknown")
		wantPage(t, second, 409, "outcome_unknown")
	})
}

// TestFormPages: a page of the application replaces the built-in one; a template that fails
// does not hide the problem. Requests without effect reach the handler.
func TestFormPages(t *testing.T) {
	t.Parallel()
	own := template.Must(template.New("").Parse(`<p>{{.Code}}: {{if eq .Code "token_unknown"}}{{.Missing}}{{end}}see us</p>`))
	onEveryForm(t, semelhttp.FormOptions{Page: own}, func(t *testing.T, f *shopForm) {
		if p := f.send(t, "ann", urlencoded, ""); p.status != 400 || p.body != "<p>token_missing: see us</p>" {
			t.Errorf("got %d %q, want the application's page", p.status, p.body)
		}
		if p := f.submit(t, "ann", "<script>", "Ann"); p.status != 403 || !strings.Contains(p.body, "can no longer be sent") || strings.Contains(p.body, "<script>") {
			t.Errorf("got %d %q, want the built-in page", p.status, p.body)
		}
		r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL, nil))(t)
		resp := check.Must(f.server.Client().Do(r))(t)
		defer func() { _ = resp.Body.Close() }()
		if text, err := io.ReadAll(resp.Body); string(text) != "the form" || err != nil {
			t.Errorf("GET = %q, %v, want the form", text, err)
		}
	})
}

// TestFormOptions: wrong arguments are named.
func TestFormOptions(t *testing.T) {
	t.Parallel()
	e := newTestEngine(t, semel.Options{})
	p := onetime.Define[cart]("place_order", onetime.Options{})
	ok := semelhttp.FormOptions{ScopeFunc: byUser}
	errs := map[string]error{}
	_, errs["engine"] = semelhttp.Form(nil, p, ok)
	_, errs["purpose"] = semelhttp.Form[cart](e, nil, ok)
	_, errs["ScopeFunc"] = semelhttp.FormTx(e.Engine, p, semelhttp.FormOptions{})
	_, errs["MaxBody"] = semelhttp.Form(e, p, semelhttp.FormOptions{ScopeFunc: byUser, MaxBody: -1})
	for field, err := range errs {
		if f, is := errtype.Find[*semel.FieldError](err); !is || f.Field != field {
			t.Errorf("got %v, want an error about %s", err, field)
		}
	}
	if _, err := semelhttp.FormTx[cart, semelTx](nil, p, ok); err == nil {
		t.Error("FormTx accepts no engine")
	}
}
