package doctest_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/repository"
)

const (
	english    = "README.md"
	errorsPage = "docs/errors.md"

	chineseSuffix = ".zh-CN.md"
)

// translation is the name of the Chinese page of an English one.
func translation(name string) string { return strings.TrimSuffix(name, ".md") + chineseSuffix }

// translated lists the English pages that have a Chinese page.
func translated(t *testing.T) (names []string) {
	t.Helper()
	all := repository.Files(t, "*.md")
	for _, name := range all {
		if original, ok := strings.CutSuffix(name, chineseSuffix); ok {
			if !slices.Contains(all, original+".md") {
				t.Errorf("%s has no English page", name)
				continue
			}
			names = append(names, original+".md")
		}
	}
	if len(names) < 7 {
		t.Errorf("only %q have a Chinese page", names)
	}
	return names
}

// TestTranslationsSayTheSame compares what must not differ between the languages: the code
// blocks, the headings, the lists, the number of rows of tables, and the code in the
// first cell of each row.
func TestTranslationsSayTheSame(t *testing.T) {
	for _, name := range translated(t) {
		t.Run(name, func(t *testing.T) {
			en, zh := repository.Read(t, name), repository.Read(t, translation(name))
			if diff := cmp.Diff(blocks(en), blocks(zh), cmp.AllowUnexported(block{})); diff != "" {
				t.Errorf("the code differs (-English +Chinese):\n%s", diff)
			}
			if diff := cmp.Diff(shape(en), shape(zh)); diff != "" {
				t.Errorf("headings, tables and lists differ (-English +Chinese):\n%s", diff)
			}
		})
	}
}

// TestTranslationsLinkToEachOther looks at the line below the title.
func TestTranslationsLinkToEachOther(t *testing.T) {
	for _, name := range translated(t) {
		for page, want := range map[string]string{
			name:              fmt.Sprintf("English | [中文](%s)", filepath.Base(translation(name))),
			translation(name): fmt.Sprintf("[English](%s) | 中文", filepath.Base(name)),
		} {
			if lines := strings.SplitN(repository.Read(t, page), "\n", 4); len(lines) < 4 || lines[2] != want {
				t.Errorf("the third line of %s is not %q", page, want)
			}
		}
	}
}

// TestTranslationsPreferChineseLinks: a Chinese page links to the Chinese page of a
// document if there is one, except to its own English page.
func TestTranslationsPreferChineseLinks(t *testing.T) {
	pages := translated(t)
	for _, name := range pages {
		page := translation(name)
		for _, m := range link.FindAllStringSubmatch(prose(repository.Read(t, page)), -1) {
			path, _, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), path)
			if target != name && slices.Contains(pages, target) {
				t.Errorf("%s links to %s, which has a Chinese page", page, m[1])
			}
		}
	}
}

// shape keeps the marks of headings and lists, and, of each row of a table, the number of
// its cells and the code in the first one.
func shape(text string) []string {
	var marks []string
	for line := range strings.Lines(prose(text)) {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(first, "#"), first == "-", first == "1.":
			marks = append(marks, first)
		case first == "|":
			cells := strings.Count(strings.ReplaceAll(line, " |\n", ""), " | ") + 1
			marks = append(marks, fmt.Sprint("| ", cells, " ", strings.Join(code.FindAllString(firstCell(rest), -1), " ")))
		}
	}
	return marks
}

var code = regexp.MustCompile("`[^`]+`")

func firstCell(row string) string {
	cell, _, _ := strings.Cut(row, " | ")
	return cell
}

// TestChinesePunctuation: punctuation between Chinese characters is full-width.
func TestChinesePunctuation(t *testing.T) {
	comma := regexp.MustCompile(`.{0,10}(?:\p{Han}[,;:]\S|[,;:]\p{Han}).{0,10}`)
	bracket := regexp.MustCompile(`.{0,10}(?:\p{Han}[(!?]|[)!?]\p{Han}|\p{Han}\. ).{0,10}`)
	check := func(name string, half *regexp.Regexp) {
		text := link.ReplaceAllString(prose(repository.Read(t, name)), "]")
		for _, found := range half.FindAllString(text, -1) {
			t.Errorf("%s has half-width punctuation in %q", name, found)
		}
	}
	for _, name := range translated(t) {
		check(translation(name), comma)
		check(translation(name), bracket)
	}
}
