package semelhttp

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// target returns the path and the query that the client sent, with escapes and in
// its order. They are taken from the request line, because http.StripPrefix and
// many routers change r.URL. A request that a program has made, and no server has
// read, has no request line; its target is that of r.URL.
func target(r *http.Request) (path, query string) {
	line := r.RequestURI
	switch {
	case line == "":
		return r.URL.EscapedPath(), r.URL.RawQuery
	case line[0] != '/': // the absolute form, which proxies receive
		_, line, _ = strings.Cut(line, "://")
		from := strings.IndexAny(line, "/?")
		if from < 0 {
			return "/", ""
		}
		line = line[from:]
	}
	path, query, _ = strings.Cut(line, "?")
	if path == "" {
		path = "/"
	}
	return path, query
}

// text returns s, with its bytes escaped if it is not UTF-8: JSON would make such
// bytes all the same. No query and no header contains the prefix.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return "\x00" + url.QueryEscape(s)
}
