//go:build !race

package archtest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// TestNoMachinePaths: no published file contains a path of the machine on which
// it was written, or the host of its package proxy.
func TestNoMachinePaths(t *testing.T) {
	machine := machinePattern(
		[]string{repository.Root(t), strings.TrimSpace(repository.Run(t, "go", "env", "GOROOT")), os.Getenv("HOME")},
		strings.TrimSpace(repository.Run(t, "go", "env", "GOPROXY")))
	for _, name := range repository.Files(t) {
		if found := machine.FindString(repository.Read(t, name)); found != "" {
			t.Errorf("%s names %q", name, strings.TrimSpace(found))
		}
	}
}

// machinePattern matches paths below one of dirs, and the hosts of a GOPROXY.
// It ignores a directory of one element that is not a home, because its name is
// too common.
func machinePattern(dirs []string, proxies string) *regexp.Regexp {
	parts := []string{`/(home|Users)/[a-z]`, `\bdeb\.debian\.org\b`}
	for _, dir := range dirs {
		if strings.Count(dir, "/") > 1 || dir == "/root" {
			parts = append(parts, `(^|[^\w.])`+regexp.QuoteMeta(dir)+`/`)
		}
	}
	for _, proxy := range strings.FieldsFunc(proxies, func(r rune) bool { return r == ',' || r == '|' }) {
		if _, rest, ok := strings.Cut(proxy, "://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			parts = append(parts, `\b`+regexp.QuoteMeta(host)+`\b`)
		}
	}
	return regexp.MustCompile(`(?m)` + strings.Join(parts, "|"))
}

func TestMachinePattern(t *testing.T) {
	machine := machinePattern([]string{"/builds/semel", "/src", "/root"}, "https://cache.example/go,direct|https://mirror.example")
	for text, want := range map[string]bool{
		"see /builds/semel/go.mod":   true,
		"open /" + "root/.cache/go":  true,
		"from cache.example":         true,
		"and https://mirror.example": true,
		"/src/main.js":               false,
		"testdata/builds/semel/x":    false,
		"docs/decisions":             false,
	} {
		check.Equal(t, machine.MatchString(text), want, "the pattern matches %q", text)
	}
}
