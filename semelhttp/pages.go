package semelhttp

import (
	_ "embed"
	"html/template"
	"net/http"
	"path"
)

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
