package semelhttp_test

import (
	"encoding/hex"
	"math/rand/v2"
	"mime"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestFingerprintBytesOfARequest holds the bytes whose digest is stored: after a
// change, retries across an upgrade would be other requests.
func TestFingerprintBytesOfARequest(t *testing.T) {
	t.Parallel()
	r := semelhttp.Request{
		Method: "POST", Path: "/ops", Query: "a=1", MediaType: "text/plain", Body: []byte(strings.Repeat("b", 200)),
	}
	got, err := r.AppendFingerprint([]byte("before"))
	want := "before" + "\x02" + "\x04POST" + "\x04/ops" + "\x03a=1" + "\x0atext/plain" + "\xc8\x01" + strings.Repeat("b", 200)
	if string(got) != want || err != nil {
		t.Errorf("AppendFingerprint appends\n%s, %v, want\n%s", hex.Dump(got), err, hex.Dump([]byte(want)))
	}
}

// TestFingerprintBytesOfTwoRequestsDiffer wherever the border between two fields
// is.
func TestFingerprintBytesOfTwoRequestsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[string]semelhttp.Request)
	const text = "aaaaaa"
	cuts := make([]int, 4)
	var cut func(i, from int)
	cut = func(i, from int) {
		if i < len(cuts) {
			for cuts[i] = from; cuts[i] <= len(text); cuts[i]++ {
				cut(i+1, cuts[i])
			}
			return
		}
		r := semelhttp.Request{
			Method: text[:cuts[0]], Path: text[cuts[0]:cuts[1]], Query: text[cuts[1]:cuts[2]],
			MediaType: text[cuts[2]:cuts[3]], Body: []byte(text[cuts[3]:]),
		}
		b := check.Must(r.AppendFingerprint(nil))(t)
		if other, ok := seen[string(b)]; ok {
			t.Fatalf("%+v and %+v are the same", r, other)
		}
		seen[string(b)] = r
	}
	cut(0, 0)
	if len(seen) < 200 {
		t.Fatalf("only %d requests were compared", len(seen))
	}
}

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
	h := protect(payment())
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
