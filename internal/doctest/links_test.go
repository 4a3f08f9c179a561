package doctest_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/semelgo/semel/internal/repository"
)

// link finds [text](target) and ![text](target).
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksHaveTargets follows every relative link of every document, to the file and to
// the heading in it.
func TestLinksHaveTargets(t *testing.T) {
	followed := 0
	for _, name := range repository.Files(t, "*.md") {
		for _, m := range link.FindAllStringSubmatch(prose(repository.Read(t, name)), -1) {
			target, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %q is not a link: %v", name, m[1], err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			followed++
			follow(t, name, target)
		}
	}
	if followed == 0 {
		t.Error("no relative link in any document: this test looked at nothing")
	}
}

func follow(t *testing.T, from string, target *url.URL) {
	t.Helper()
	path := from
	if target.Path != "" {
		path = filepath.Join(filepath.Dir(from), target.Path)
	}
	if _, err := os.Stat(filepath.Join(repository.Root(t), path)); err != nil {
		t.Errorf("%s links to %s, which does not exist", from, target)
		return
	}
	if target.Fragment == "" || !strings.HasSuffix(path, ".md") {
		return
	}
	if !anchors(repository.Read(t, path))[target.Fragment] {
		t.Errorf("%s links to %s; %s has no such heading", from, target, path)
	}
}

// anchors returns the link targets of the headings of a document: in lower case, with
// hyphens for spaces, and without punctuation.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for line := range strings.Lines(prose(text)) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		heading := strings.TrimSpace(strings.TrimLeft(line, "#"))
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, heading)] = true
	}
	return found
}

func TestAnchors(t *testing.T) {
	got := anchors("# Which call, for `which` effect?\n```\n# not this\n```\n## 词汇 表\n")
	for _, want := range []string{"which-call-for-which-effect", "词汇-表"} {
		if !got[want] {
			t.Errorf("anchors lack %q: %v", want, got)
		}
	}
	if len(got) != 2 {
		t.Errorf("anchors(...) = %v, want two", got)
	}
}
