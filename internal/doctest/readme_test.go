package doctest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

const (
	english = "README.md"
	chinese = "README.zh-CN.md"
)

// TestReadmesSayTheSame compares what must not differ between the languages: the
// code, and the shape of sections and tables.
func TestReadmesSayTheSame(t *testing.T) {
	en, zh := read(t, english), read(t, chinese)
	if diff := cmp.Diff(blocks(en), blocks(zh), cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("the code differs (-%s +%s):\n%s", english, chinese, diff)
	}
	if diff := cmp.Diff(shape(en), shape(zh)); diff != "" {
		t.Errorf("sections, tables and lists differ (-%s +%s):\n%s", english, chinese, diff)
	}
}

// shape is the text with everything gone but the marks of headings and lists
// and, of table rows, the first cell's code.
func shape(text string) []string {
	var marks []string
	for line := range strings.Lines(prose(text)) {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(first, "#"), first == "-", first == "1.":
			marks = append(marks, first)
		case first == "|":
			marks = append(marks, "| "+strings.Join(code.FindAllString(firstCell(rest), -1), " "))
		}
	}
	return marks
}

var code = regexp.MustCompile("`[^`]+`")

func firstCell(row string) string {
	cell, _, _ := strings.Cut(row, " | ")
	return cell
}

// TestReadmeNamesEveryError: the table of errors has a row for each, with the
// status and code that package semelhttp answers it with.
func TestReadmeNamesEveryError(t *testing.T) {
	errs := map[string]error{
		"ErrInvalid": semel.ErrInvalid, "ErrInProgress": semel.ErrInProgress, "ErrInDoubt": semel.ErrInDoubt,
		"ErrOutcomeUnknown": semel.ErrOutcomeUnknown, "ErrMismatch": semel.ErrMismatch,
		"ErrKeyExpired": semel.ErrKeyExpired, "ErrResultUnavailable": semel.ErrResultUnavailable,
		"ErrUnavailable": semel.ErrUnavailable, "ErrClosed": semel.ErrClosed,
	}
	told := map[string]bool{"ErrLeaseLost": true} // a cause of the leader's context, no answer
	for name := range errs {
		told[name] = true
	}
	for _, name := range sentinels(t) {
		if !told[name] {
			t.Errorf("errors.go declares %s; this test and the README do not know it", name)
		}
	}
	for _, file := range []string{english, chinese} {
		text := read(t, file)
		for name, err := range errs {
			p := semelhttp.ProblemOf(err)
			want := "| `" + name + "` | " + strconv.Itoa(p.Status) + " `" + p.Code + "` | "
			if !strings.Contains(text, "\n"+want) {
				t.Errorf("%s lacks a row that starts with %q", file, want)
			}
		}
	}
}

// sentinels lists the exported error variables of the root.
func sentinels(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), "errors.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, o := range f.Scope.Objects {
		if o.Kind == ast.Var && strings.HasPrefix(name, "Err") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
