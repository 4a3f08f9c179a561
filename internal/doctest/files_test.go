package doctest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// root is the directory of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir := check.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	return dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join(root(t), name)))(t)
	return string(text)
}

// documents lists the Markdown files that git would publish.
func documents(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git work tree: %v", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(names) < 5 {
		t.Fatalf("git found only %q", names)
	}
	return names
}

// prose returns the text without fenced code, in which brackets are not links.
func prose(text string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			b.WriteString(line)
		}
	}
	return b.String()
}

// block is one fenced piece of code.
type block struct{ language, text string }

func blocks(text string) []block {
	var found []block
	inside := false
	for line := range strings.Lines(text) {
		mark, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !inside:
			found = append(found, block{language: mark})
			inside = true
		case isFence:
			inside = false
		case inside:
			found[len(found)-1].text += line
		}
	}
	return found
}
