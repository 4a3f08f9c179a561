// Package page is the chat's only page: plain HTML, CSS and JavaScript. It has
// no build step and loads nothing from other servers.
package page

import (
	"embed"
	"net/http"
)

//go:embed static
var static embed.FS

// policy is the Content-Security-Policy: the page loads from its own server
// only, and calls no other.
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

// secure adds the security headers. The files are small and change with the
// program, so a browser revalidates them on each visit.
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
