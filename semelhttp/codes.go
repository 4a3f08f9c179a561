package semelhttp

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"sync"

	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// The codes of this package's problems. They are stable.
const (
	codeKeyMissing        = "key_missing"
	codeKeyMalformed      = "key_malformed"
	codeKeyReused         = "key_reused"
	codeKeyExpired        = "key_expired"
	codeInProgress        = wire.CodeInProgress
	codeOutcomeUnknown    = "outcome_unknown"
	codeResultUnavailable = "result_unavailable"
	codeUnavailable       = "unavailable"
	codeUnauthenticated   = "unauthenticated"
	codeForbidden         = "forbidden"
	codeBodyTooLarge      = "body_too_large"
	codeBodyUnreadable    = "body_unreadable"
	codeBodyInvalid       = "body_invalid"
	codeTokenMissing      = "token_missing"
	codeTokenUnknown      = "token_unknown"
	codeTokenExpired      = "token_expired"
	codeFormChanged       = "form_changed"
	codeFailed            = "failed"
	codeInternal          = "internal"
)

// problemPage is the documentation of one problem type.
type problemPage struct {
	Code   string
	Status int // usual status
	Title  string
	Means  string // what is known about the operation
	Do     string // what the client should do
	Form   bool   // of Form, whose clients are browsers: no part of an API's Declaration
}

//go:embed problems.json
var problemsJSON []byte

// catalogue returns all problems of this package.
var catalogue = sync.OnceValue(func() (all []problemPage) { //nolint:gochecknoglobals // a constant that is decoded once
	if err := json.Unmarshal(problemsJSON, &all); err != nil {
		panic(err) //nolint:forbidigo // not reachable: the file is a part of the program
	}
	return all
})

func pageOf(code string) (problemPage, bool) {
	for _, p := range catalogue() {
		if p.Code == code {
			return p, true
		}
	}
	return problemPage{}, false
}

//go:embed problems.html
var problemsHTML string

// Problems serves the documentation of the problem types: one page for each code, and
// their list. Mount it at Options.ProblemBase, to which the types point:
//
//	mux.Handle("GET /problems/", semelhttp.Problems())
func Problems() http.Handler {
	pages := template.Must(template.New("").Parse(problemsHTML))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dir, code := path.Split(r.URL.Path)
		name, data := "index", any(catalogue())
		if code != "" || dir == "" {
			page, ok := pageOf(code)
			if !ok {
				http.NotFound(w, r)
				return
			}
			name, data = "page", page
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_ = pages.ExecuteTemplate(w, name, data) // fails only if the client hung up
	})
}
