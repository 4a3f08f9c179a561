package console

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// functions are what the templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"ago":      ago,
		"later":    later,
		"span":     recordview.Ago,
		"scope":    func(r store.Record) string { return recordview.Scope(&r) },
		"safe":     recordview.Safe,
		"code":     func(r store.Record) string { return codeOf(&r) },
		"dead":     admin.IsDeadLetter,
		"hasDue":   recordview.HasDue,
		"overdue":  func(r store.Record) bool { return isOverdue(&r) },
		"lower":    func(s store.State) string { return strings.ToLower(s.String()) },
		"states":   store.States,
		"instant":  instant,
		"number":   number,
		"title":    title,
		"number64": func(n int) string { return number(int64(n)) },
		"tries":    func(r store.Record) []recordview.Try { return recordview.TriesOf(&r, false) },
		"tab": func(p *page, path, text string) tab {
			return tab{path + p.EngineQuery(), text, p.Path == path}
		},
		"probeForm": func(p *page, id store.ID) probeForm { return probeForm{p, id} },
		"decide": func(p *page, a Action, token string, n int) decisionForm {
			return decisionForm{p, a, []string{token}, n == 1, n}
		},
		"decideAll": func(p *page, a Action, tokens []string) decisionForm {
			return decisionForm{p, a, tokens, len(tokens) == 1, len(tokens)}
		},
	}
}

// tab is a link of the navigation.
type tab struct {
	URL, Text string
	Current   bool
}

// probeForm is the form that calls the probe of a record.
type probeForm struct {
	Page *page
	ID   store.ID
}

// decisionForm is the form that asks for a decision about records.
type decisionForm struct {
	Page   *page
	Action Action
	Tokens []string
	Single bool
	Count  int
}

// title returns the name of an action for a button.
func title(a Action) string {
	if a == "" {
		return ""
	}
	return strings.ToUpper(string(a[:1])) + string(a[1:])
}

// ago returns an elapsed time, with the instant for a pointer.
func ago(d time.Duration) template.HTML { return relative(-d, recordview.Ago(d)+" ago") }

// later returns a time that is to come, or has passed.
func later(d time.Duration) template.HTML {
	if d <= 0 {
		return relative(d, recordview.Ago(-d)+" ago")
	}
	return relative(d, "in "+recordview.Ago(d))
}

// relative returns the HTML of a time from now.
func relative(d time.Duration, text string) template.HTML {
	at := clock.Now().Add(d).UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, //nolint:gosec // only times and numbers are in it
		at.Format(time.RFC3339), instant(at), template.HTMLEscapeString(text)))
}

// instant returns a time for people.
func instant(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// number returns n with thin groups of three digits.
func number(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// bodyText returns stored bytes for people: indented JSON, text, or hexadecimal digits.
func bodyText(body []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, body, "", "  ") == nil {
		return indented.String()
	}
	if text := string(body); recordview.Safe(text) == text {
		return text
	}
	return hex.Dump(body)
}
