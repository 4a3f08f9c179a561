//go:build !race

package archtest_test

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// sharedClient matches the uses of the clients and of the transport that all code of a
// process shares. A clone of the transport is not shared.
var sharedClient = regexp.MustCompile(`\bhttp\.(?:DefaultClient\b|Get\(|Head\(|Post\(|PostForm\(|DefaultTransport(?:\.[^(]|[^.\w]))`)

// TestTestsShareNoClient: a test has a client with a transport of its own.
// httptest.Server.Close closes the idle connections of http.DefaultTransport, also one
// that a parallel test is about to use. Examples may share one: they run alone.
func TestTestsShareNoClient(t *testing.T) {
	for _, name := range tracked(t, "*_test.go") {
		if strings.HasSuffix(name, "example_test.go") || strings.HasPrefix(name, "internal/archtest/") {
			continue
		}
		text := read(t, name)
		if !strings.Contains(text, "http.") {
			continue
		}
		if found := sharedClient.FindString(withoutComments(t, name, text)); found != "" {
			t.Errorf("%s uses %s; use a client with a transport of its own", name, found)
		}
	}
}

// withoutComments replaces the comments of a file by spaces.
func withoutComments(t *testing.T, name, text string) string {
	t.Helper()
	set := token.NewFileSet()
	f := check.Must(parser.ParseFile(set, name, text, parser.ParseComments))(t)
	plain := []byte(text)
	for _, group := range f.Comments {
		for i := set.Position(group.Pos()).Offset; i < set.Position(group.End()).Offset; i++ {
			plain[i] = ' '
		}
	}
	return string(plain)
}

func TestSharedClient(t *testing.T) {
	for text, want := range map[string]bool{
		"http.DefaultClient.Do(r)":                                true,
		"http.Get(url)":                                           true,
		"http.DefaultTransport.RoundTrip(r)":                      true,
		"{Base: http.DefaultTransport}":                           true,
		"http.DefaultTransport.(*http.Transport).Clone()":         false,
		"http.DefaultTransport.(*http.Transport).Clone().Proxy":   false,
		"&http.Client{Transport: http.NewFileTransport(nothing)}": false,
	} {
		check.Equal(t, sharedClient.MatchString(text), want, "%q is a shared client", text)
	}
}
