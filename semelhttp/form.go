package semelhttp

import (
	"cmp"
	"html/template"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
)

// HeaderToken is the request header that carries a one-time token, for scripts that send
// a form themselves.
const HeaderToken = "One-Time-Token"

// DefaultTokenField is the name of the form's hidden field unless FormOptions set another.
const DefaultTokenField = "one_time_token"

// FormOptions say how the submits of a form are protected. Only ScopeFunc is required.
type FormOptions struct {
	// ScopeFunc returns the subject of the token: the user or the session that
	// authentication has put into the request's context. It must be the one that the
	// token was issued for. Required. Its error is answered with its *Problem if it has
	// one, else with 401.
	ScopeFunc func(*http.Request) (semel.Scope, error)
	// Field is the name of the hidden field. Empty: [DefaultTokenField].
	Field string
	// Page is the template of the page that is sent instead of a response of the handler:
	// for a form that has expired, for instance. It gets the [*Problem]. Nil: a short
	// page in English.
	Page *template.Template
	// StatusVerdict is as in [Options], for [Form] only. Nil: every status from 400 to
	// 499 is taken for proof that nothing happened.
	StatusVerdict func(status int) store.Verdict
	// MaxBody, MaxResponse, KeepNoStore, ReplayHeaders and ErrorFunc are as in [Options].
	MaxBody, MaxResponse int64
	KeepNoStore          bool
	ReplayHeaders        []string
	ErrorFunc            func(*http.Request, error)
}

// Form returns middleware for the submits of a plain HTML form, of which each has a token
// that p has issued: in a hidden field of the form, or in the header [HeaderToken]. The
// first submit of a token runs the handler, whose effect may be anywhere; every other
// submit, by a double click, a reload or the back button, gets the first response. The
// handler finds the token's payload with p.Payload.
//
// The page with the form is a GET of the same route or of another one. It issues the token
// and writes it into the form:
//
//	<input type="hidden" name="one_time_token" value="{{.Token}}" autocomplete="off">
//
// Without autocomplete="off" some browsers keep the old token when the page is reloaded.
// The page must not say Cache-Control: no-store: the back button would then fetch another
// token, and a second submit would be another operation.
//
// The status of the handler's response decides:
//   - below 400: the token is used, and the response is stored and replayed. A redirect
//     (303 See Other) is the usual one;
//   - from 400 to 499: nothing happened and nothing is stored, and the token can be used
//     again. A handler that refuses what the user has entered shows the form again with
//     such a status, 422 for instance, and with the token that the request has;
//   - from 500 up: the effect is unknown, as with [Middleware].
//
// A submit with a used token and other contents is refused with form_changed, so that no
// change is lost without a word. The contents are the method, the target and the fields;
// of files, their names and bytes.
//
// Errors are sent as pages of FormOptions.Page. A token that is missing is 400, one of
// another user or that is unknown is 403, and one that has expired is 410. The status
// 409 in_progress follows after the purpose's Wait.
//
// A token is a protection against cross-site request forgery as well, if the subject is a
// user or a session that was authenticated, because another site can neither read nor
// guess it. It is none if the subject is the same for all visitors; use
// http.CrossOriginProtection in any case. A token must never be in the URL of a page,
// where logs and other sites see it.
//
// GET, HEAD, OPTIONS and TRACE go to the handler untouched. Nothing outside of the
// middleware may read the body. Otherwise the rules of [Middleware] apply.
func Form[P any](e semel.Runner, p *onetime.Purpose[P], o FormOptions) (func(http.Handler) http.Handler, error) {
	m, err := newForm(e, p, o)
	if err != nil {
		return nil, err
	}
	m.serve = serveLeased
	return m.wrap, nil
}

// FormTx is [Form] with the handler in a transaction of e, which it gets by semel.TxOf: its
// effect, the use of the token and the response commit together. It is the first choice
// for short handlers. With a status from 400 up, after a panic and after a crash
// everything is rolled back, and the token can be used again. Otherwise the rules of
// [Atomic] apply.
func FormTx[P, Tx any](e *semel.Engine[Tx], p *onetime.Purpose[P], o FormOptions) (func(http.Handler) http.Handler, error) {
	if e == nil {
		return nil, &semel.FieldError{Field: "engine", Reason: "is nil"}
	}
	m, err := newForm(e, p, o)
	if err != nil {
		return nil, err
	}
	m.atomic, m.serve = true, serveAtomic(e)
	return m.wrap, nil
}

// newForm returns middleware for a form, without its serve.
func newForm[P any](e semel.Runner, p *onetime.Purpose[P], o FormOptions) (*middleware, error) {
	switch {
	case e == nil:
		return nil, &semel.FieldError{Field: "engine", Reason: "is nil"}
	case p == nil:
		return nil, &semel.FieldError{Field: "purpose", Reason: "is nil"}
	}
	f := &form{field: cmp.Or(o.Field, DefaultTokenField), page: cmp.Or(o.Page, defaultFormPage())}
	s, err := Options{
		ScopeFunc: o.ScopeFunc, KeyFunc: f.token, StatusVerdict: o.StatusVerdict, MaxBody: o.MaxBody,
		MaxResponse: o.MaxResponse, KeepNoStore: o.KeepNoStore, ReplayHeaders: o.ReplayHeaders, ErrorFunc: o.ErrorFunc,
	}.settle()
	if err != nil {
		return nil, err
	}
	s.form, s.format = true, f.response
	call := func(x *exchange) semel.Call { return p.Call(x.in.scope, x.in.key) }
	return &middleware{settings: s, engine: e, call: call}, nil
}
