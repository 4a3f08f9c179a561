package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Handler rejects a console that every visitor could use, or that no log would show.
func TestRequiredOptions(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	engines := []console.Engine{{Runner: g.engine}}
	authenticate := func(*http.Request) (console.Actor, error) { return console.Actor{}, nil }
	audit := func(context.Context, console.Event) error { return nil }
	for field, args := range map[string]struct {
		engines []console.Engine
		o       console.Options
	}{
		"Authenticate":      {engines, console.Options{Audit: audit}},
		"Audit":             {engines, console.Options{Authenticate: authenticate}},
		"engines":           {nil, console.Options{Authenticate: authenticate, Audit: audit}},
		"engines[1].Name":   {append(engines, engines[0]), console.Options{Authenticate: authenticate, Audit: audit}},
		"engines[0].Runner": {[]console.Engine{{}}, console.Options{Authenticate: authenticate, Audit: audit}},
	} {
		_, err := console.Handler(args.engines, args.o)
		var wrong *semel.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field && (field != "engines[1].Name" || wrong.Field != "engines[0].Name") {
			t.Errorf("without %s: %v", field, err)
		}
	}
}

// Without an actor no page, file or action is answered.
func TestNoAccessWithoutAuthentication(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	tokens := g.get(t, "record?id="+id.String()).tokens()
	g.become(console.Actor{Reveal: true, Write: true}) // no name
	for _, path := range append(pages(), "record?id="+id.String(), "preview?action=purge", "events", "console.css", "console.js", "none") {
		g.get(t, path).has(t, http.StatusUnauthorized).hasNot(t, "order-1", "charge", "EventSource")
	}
	form := url.Values{"action": {"resolve"}, "record": tokens, "to": {"failed"}, "reason": {"x"}, "id": {id.String()}}
	for _, path := range []string{"apply", "record", "dead"} {
		g.post(t, path, form).has(t, http.StatusUnauthorized).hasNot(t, "order-1")
	}
	check.Equal(t, g.state(t, id), store.InDoubt, "the record is")
	check.Equal(t, len(g.events), 0, "audited events")
}

func TestReadOnlyActor(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	tokens := g.get(t, "record?id="+id.String()).tokens()
	g.become(console.Actor{Name: "eve"})
	g.get(t, "record?id="+id.String()).has(t, http.StatusOK, "order-1").hasNot(t, "<form method")
	g.get(t, "preview?action=resolve&state=indoubt").has(t, http.StatusForbidden)
	form := url.Values{"action": {"resolve"}, "record": tokens, "to": {"failed"}, "reason": {"x"}}
	g.post(t, "apply", form).has(t, http.StatusForbidden)
	form.Set("action", "reveal")
	g.post(t, "apply", form).has(t, http.StatusForbidden)
	check.Equal(t, g.state(t, id), store.InDoubt, "the record is")
	check.Equal(t, len(g.events), 0, "audited events")
}

// A form of another site, or of a program that hides where it is from, changes nothing.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	form := url.Values{"action": {"resolve"}, "record": g.get(t, "record?id="+id.String()).tokens(), "to": {"failed"}, "reason": {"x"}}
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		nil,
	} {
		g.send(t, http.MethodPost, "apply", form, headers...).has(t, http.StatusForbidden)
		g.send(t, http.MethodPost, "record", url.Values{"id": {id.String()}}, headers...).has(t, http.StatusForbidden).hasNot(t, "4111")
	}
	// A link of another site cannot change anything either.
	g.get(t, "apply?"+form.Encode()).has(t, http.StatusNotFound)
	check.Equal(t, g.state(t, id), store.InDoubt, "the record is")
	check.Equal(t, len(g.events), 0, "audited events")
	g.send(t, http.MethodPost, "apply", form, "Origin", g.server.URL).has(t, http.StatusOK, "1 done")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	for _, path := range append(pages(), "console.css", "none") {
		h := g.get(t, path).Header
		policy := h.Get("Content-Security-Policy")
		if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		check.Equal(t, h.Get("X-Content-Type-Options"), "nosniff", "%s: X-Content-Type-Options", path)
		check.Equal(t, h.Get("Cache-Control"), "no-store", "%s: Cache-Control", path)
		check.Equal(t, h.Get("Referrer-Policy"), "same-origin", "%s: Referrer-Policy", path)
	}
}

// Hostile names, keys, errors, results and reasons are text on every page.
func TestHostileText(t *testing.T) {
	t.Parallel()
	g := newRig(t, memory.New(memory.Options{}))
	const evil = `"><script>alert(1)</script><img/src=x/onerror=alert(2)>'{{.}}`
	op := semel.Define(`op`+evil, semel.OperationOptions[input]{})
	call := op.Call(semel.ScopeOf(evil, "javascript:alert(3)"), evil+"\xff\x00", input{evil})
	_, _, err := semel.Do(t.Context(), g.engine, call, func(context.Context) (string, error) { return "", errors.New(evil) })
	check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the call")
	id := call.ID()
	tokens := g.get(t, "record?id="+id.String()).tokens()
	g.become(console.Actor{Name: evil, Reveal: true, Write: true})
	paths := append(pages(), "record?id="+id.String(), "preview?action=resolve&id="+id.String(),
		"records?"+url.Values{"key": {evil}, "operation": {evil}, "scope": {evil}, "code": {evil}}.Encode())
	answers := make([]answer, 0, len(paths)+3)
	for _, path := range paths {
		answers = append(answers, g.get(t, path).has(t, http.StatusOK))
	}
	form := url.Values{"action": {"resolve"}, "record": tokens, "to": {"failed"}, "code": {evil}, "message": {evil}, "reason": {evil}}
	answers = append(answers, g.post(t, "apply", form).has(t, http.StatusOK, "1 done"))
	answers = append(answers, g.post(t, "record", url.Values{"id": {id.String()}}).has(t, http.StatusOK, "&lt;script"))
	answers = append(answers, g.get(t, "records?state="+url.QueryEscape(evil)).has(t, http.StatusBadRequest))
	for _, a := range answers {
		a.hasNot(t, "<script>alert", "<img", `href="javascript`, "/onerror=alert(2)>")
	}
}

// Wrong and huge parameters are answered with an error, and no page sends the browser
// elsewhere.
func TestWrongParameters(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	long := strings.Repeat("x", 5000)
	for path, status := range map[string]int{
		"record":                               http.StatusBadRequest,
		"record?id=zz":                         http.StatusBadRequest,
		"record?id=" + strings.Repeat("0", 32): http.StatusNotFound,
		"records?id=//evil.example":            http.StatusBadRequest,
		"records?after=zz":                     http.StatusBadRequest,
		"records?key=" + long:                  http.StatusBadRequest,
		"records?operation=" + long:            http.StatusBadRequest,
		"records?engine=other":                 http.StatusNotFound,
		"preview?action=drop":                  http.StatusBadRequest,
		"preview?action=resolve&id=zz":         http.StatusBadRequest,
		"..%2f..%2fetc/passwd":                 http.StatusNotFound,
		"/evil.example":                        http.StatusNotFound,
		"static/console.css":                   http.StatusNotFound,
	} {
		a := g.get(t, path)
		if a.StatusCode == http.StatusTemporaryRedirect || a.StatusCode == http.StatusMovedPermanently {
			if at := a.Header.Get("Location"); strings.HasPrefix(at, "//") || strings.Contains(at, ":") {
				t.Errorf("%s leads to %s", path, at)
			}
			continue
		}
		a.has(t, status)
	}
	reason := func(v url.Values) url.Values { v.Set("reason", "x"); return v }
	for name, form := range map[string]url.Values{
		"no reason":      {"action": {"purge"}},
		"long reason":    {"action": {"purge"}, "reason": {long}},
		"no record":      reason(url.Values{"action": {"cancel"}}),
		"wrong record":   reason(url.Values{"action": {"cancel"}, "record": {"x.y.z.0"}}),
		"many records":   reason(url.Values{"action": {"cancel"}, "record": make([]string, 1001)}),
		"unknown action": reason(url.Values{"action": {"reveal"}}),
		"no end":         reason(url.Values{"action": {"resolve"}, "record": {strings.Repeat("0", 32) + ".3.1.0"}}),
		"no JSON":        reason(url.Values{"action": {"resolve"}, "to": {"succeeded"}, "result": {"{"}, "record": {strings.Repeat("0", 32) + ".3.1.0"}}),
	} {
		if a := g.post(t, "apply", form); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, a.StatusCode)
		}
	}
	g.post(t, "apply", url.Values{"reason": {strings.Repeat("x", 2<<20)}}).has(t, http.StatusRequestEntityTooLarge)
	check.Equal(t, len(g.events), 0, "audited events")
}

// A record that was guessed by its token is left alone unless the token is right.
func TestGuessedToken(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true)
	form := url.Values{"action": {"resolve"}, "record": {id.String() + ".3.1.1"}, "to": {"failed"}, "reason": {"x"}}
	g.post(t, "apply", form).has(t, http.StatusOK, "0 done, 1 changed meanwhile")
	check.Equal(t, g.state(t, id), store.InDoubt, "the record is")
}

// The handler works at the root of a server, too.
func TestMountedAtTheRoot(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	pages := check.Must(console.Handler([]console.Engine{{Name: "a b", Runner: g.engine}, {Name: "c", Runner: g.engine}}, console.Options{
		Authenticate: func(*http.Request) (console.Actor, error) { return console.Actor{Name: "ann"}, nil },
		Audit:        func(context.Context, console.Event) error { return nil },
	}))(t)
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?engine=c", nil))
	for _, text := range []string{"<option>a b</option>", "<option selected>c</option>", `href="records?engine=c"`} {
		if !strings.Contains(w.Body.String(), text) {
			t.Errorf("the page has no %s:\n%s", text, w.Body)
		}
	}
}
