// Package page has the chat's two pages: the chat, and "What happens to a retry".
// They are plain HTML, CSS and JavaScript, have no build step, and load nothing from
// other servers.
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

// Register adds the chat at /, the other page at /retries, and their files below
// /static/.
func Register(mux *http.ServeMux) {
	mux.Handle("GET /{$}", secure(file("static/page.html")))
	mux.Handle("GET /retries", secure(file("static/retries.html")))
	mux.Handle("GET /static/", secure(http.FileServerFS(static)))
}

func file(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, static, name) })
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
