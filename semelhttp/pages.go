package semelhttp

import (
	"html/template"
	"net/http"
	"path"
)

const pageHTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title></head>
<body><h1>{{.Title}}</h1>
<p><code>{{.Code}}</code>, usually with status {{.Status}}.</p>
<h2>What it means</h2><p>{{.Means}}</p>
<h2>What to do</h2><p>{{.Do}}</p>
</body></html>
`

const indexHTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Problem types</title></head>
<body><h1>Problem types</h1>
<ul>{{range .}}<li><a href="{{.Code}}">{{.Code}}</a>: {{.Title}}</li>
{{end}}</ul></body></html>
`

// Problems serves the documentation of the problem types: one page for each code, and
// their list. Mount it at Options.ProblemBase, to which the types point:
//
//	mux.Handle("GET /problems/", semelhttp.Problems())
func Problems() http.Handler {
	one := template.Must(template.New("page").Parse(pageHTML))
	list := template.Must(template.New("index").Parse(indexHTML))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dir, code := path.Split(r.URL.Path)
		if code == "" && dir != "" {
			servePage(w, list, catalogue())
			return
		}
		found, ok := pageOf(code)
		if !ok {
			http.NotFound(w, r)
			return
		}
		servePage(w, one, found)
	})
}

func servePage(w http.ResponseWriter, t *template.Template, data any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'")
	_ = t.Execute(w, data) // fails only if the client hung up
}
