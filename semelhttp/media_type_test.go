package semelhttp_test

import (
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestMediaTypesInTheirNormalForm: the fast path without parsing leaves only media types
// unparsed that parsing would not change.
func TestMediaTypesInTheirNormalForm(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	seen := make(chan string, 1)
	op := define("op", plain{Fingerprints: []func(semelhttp.Request) any{func(r semelhttp.Request) any {
		seen <- r.MediaType
		return 1
	}}})
	protect := check.Must(semelhttp.Atomic(b.Engine, op, options()))(t)
	h := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	check := func(contentType string) {
		want := contentType
		if name, params, err := mime.ParseMediaType(contentType); err == nil {
			if normal := mime.FormatMediaType(name, params); normal != "" {
				want = normal
			}
		}
		h.ServeHTTP(httptest.NewRecorder(), testRequest{mediaType: contentType}.request(t, ""))
		check.Equal(t, <-seen, want, "the media type %q is taken for", contentType)
	}
	for _, contentType := range []string{
		"application/json", "application/json; charset=utf-8", "application/json; charset=UTF-8", "application/json;charset=utf-8",
		"Application/JSON", "text/plain; Charset=utf-8", "text/plain; charset=", "text/plain; ", "text/plain;", "text/", "/plain", "text",
		"text/plain; a=b; a=c", "text/plain; a=\u212a", "text/plain; a*=utf-8''x", "text/plain; a*0=x", "a/b/c", "text/plain; a=b c", " text/plain",
	} {
		check(contentType)
	}
	const parts = `a b A Z 0 - . + / / ; ;  = = * " % é _ charset utf-8 `
	words, random := append(strings.Split(parts, " "), " ", "; "), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var contentType strings.Builder
		contentType.WriteString("a/")
		for range 1 + random.IntN(6) {
			contentType.WriteString(words[random.IntN(len(words))])
		}
		check(contentType.String())
	}
}
