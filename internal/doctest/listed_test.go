package doctest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/repository"
)

// TestEveryDocumentIsListed: docs/README.md links to each document below docs, or to its
// directory.
func TestEveryDocumentIsListed(t *testing.T) {
	list := repository.Read(t, filepath.Join("docs", "README.md"))
	for _, name := range repository.Files(t, "*.md") {
		path, is := strings.CutPrefix(name, "docs/")
		if !is || path == "README.md" {
			continue
		}
		if dir, _, in := strings.Cut(path, "/"); in && strings.Contains(list, "("+dir+"/README.md)") {
			continue
		}
		if !strings.Contains(list, "("+path+")") {
			t.Errorf("docs/README.md has no link to %s", path)
		}
	}
}
