//go:build !race

package archtest_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// documentedName finds the comment of a declaration, and the declared name.
var documentedName = regexp.MustCompile(`(?m)(?:^|\n\n|[({]\n)[ \t]*// (.*)\n(?:[ \t]*//.*\n)*(?:func (?:\([^)]*\) )?|type |var |const )(\w+)`)

// TestCommentsBeginWithTheirName: no comment of a declaration begins with another name.
func TestCommentsBeginWithTheirName(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, m := range documentedName.FindAllStringSubmatch(repository.Read(t, f.name), -1) {
			if isMisnamed(m[2], m[1]) {
				t.Errorf("%s: the comment of %s begins with another name: %s", f.name, m[2], m[1])
			}
		}
	}
}

// isMisnamed reports whether a comment begins with a name, and not with this one. A first
// word in lower case is a name, because no sentence begins with it, and so is the name of
// a test.
func isMisnamed(name, comment string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(comment), " ")
	word = strings.TrimRight(word, ",:.\n")
	if word == "" || word == name {
		return false
	}
	rest, isTest := strings.CutPrefix(word, "Test")
	return unicode.IsLower(rune(word[0])) || isTest && rest != "" && unicode.IsUpper(rune(rest[0]))
}

func TestIsMisnamed(t *testing.T) {
	for comment, want := range map[string]bool{
		"run runs it.":            false,
		"Nothing is run.":         false,
		"":                        false,
		"Tests of the run.":       false,
		"goes runs it.":           true,
		"TestOther: it is run.":   true,
		"newRunner returns a run": true,
	} {
		check.Equal(t, isMisnamed("run", comment), want, "%q is misnamed", comment)
	}
}
