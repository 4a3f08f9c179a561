// Package page is the chat's one page: HTML, CSS and JavaScript as they are
// written, without a build step and without anything from elsewhere.
package page

import (
	"embed"
	"net/http"
)

//go:embed static
var static embed.FS

// policy lets the page load and call nothing but its own server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Register adds the page at / and its files below /static/.
func Register(mux *http.ServeMux) {
	mux.Handle("GET /{$}", secure(http.HandlerFunc(index)))
	mux.Handle("GET /static/", secure(http.FileServerFS(static)))
}

func index(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, static, "static/page.html")
}

// secure adds what a browser must know. The files change only with the program,
// and are small, so nothing is cached without asking.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
