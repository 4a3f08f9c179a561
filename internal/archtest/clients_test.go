//go:build !race

package archtest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// sharedClient matches the uses of the clients and of the transport that all code of a
// process shares. A clone of the transport is not shared.
var sharedClient = regexp.MustCompile(`\bhttp\.(?:DefaultClient\b|Get\(|Head\(|Post\(|PostForm\(|DefaultTransport(?:\.[^(]|[^.\w]))`)

// TestTestsShareNoClient: a test has a client with a transport of its own.
// httptest.Server.Close closes the idle connections of http.DefaultTransport, also one
// that a parallel test is about to use. Examples may share one: they run alone.
func TestTestsShareNoClient(t *testing.T) {
	for _, name := range repository.Files(t, "*_test.go") {
		if strings.HasSuffix(name, "example_test.go") || strings.HasPrefix(name, "internal/archtest/") {
			continue
		}
		for line := range strings.Lines(repository.Read(t, name)) {
			code, _, _ := strings.Cut(line, "// ")
			if found := sharedClient.FindString(code); found != "" {
				t.Errorf("%s uses %s; use a client with a transport of its own", name, found)
			}
		}
	}
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
