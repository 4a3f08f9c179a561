package doctest_test

import (
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/repository"
)

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

// codeOn returns the first block of code on a page that contains part.
func codeOn(t *testing.T, page, part string) string {
	t.Helper()
	for _, b := range blocks(repository.Read(t, page)) {
		if strings.Contains(b.text, part) {
			return b.text
		}
	}
	t.Fatalf("%s has no code with %q", page, part)
	return ""
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// durableDatabase returns the URL of a new database on a server with durable settings,
// which the pages' engines require.
func durableDatabase(t *testing.T) string {
	t.Helper()
	return realtest.OwnPostgres(t, "fsync=on", "full_page_writes=on").Database(t)
}
