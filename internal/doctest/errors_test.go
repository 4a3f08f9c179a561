package doctest_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/repository"
	"github.com/semelgo/semel/semelhttp"
)

// packagesOfErrors are the packages whose exported errors docs/errors.md lists.
var packagesOfErrors = []string{"semel", "admin", "journal", "store", "memory", "sqlite", "postgres", "mysql", "task", "inbox", "onetime", "semelhttp", "client", "semelwatermill"}

// errorName finds an error in backticks: a variable Err…, or a type *…Error.
var errorName = regexp.MustCompile("`(?:[a-z]+\\.)?(?:Err[A-Z]\\w*)`|`\\*(?:[a-z]+\\.)?\\w*Error`")

// TestErrorsPageNamesEveryError: the page names each exported error of these packages, with
// its package unless it is semel, and no error that does not exist.
func TestErrorsPageNamesEveryError(t *testing.T) {
	all, want := compiled(t), map[string]bool{}
	for _, pkg := range packagesOfErrors {
		for _, id := range all[pkg].Scope().Names() {
			switch {
			case !ast.IsExported(id) || id == "ErrorFunc":
			case strings.HasPrefix(id, "Err"):
				want[strings.TrimPrefix(pkg+"."+id, "semel.")] = true
			case strings.HasSuffix(id, "Error") && exports(all[pkg], id+".Error"):
				want["*"+pkg+"."+id] = true
			}
		}
	}
	for _, page := range []string{errorsPage, translation(errorsPage)} {
		got := map[string]bool{}
		for _, m := range errorName.FindAllString(repository.Read(t, page), -1) {
			name := strings.Trim(m, "`")
			if of, ok := strings.CutPrefix(name, "*"); ok && !strings.Contains(of, ".") {
				name = "*semel." + of
			}
			got[strings.TrimPrefix(name, "semel.")] = true
		}
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Errorf("%s differs (-code +page):\n%s", page, diff)
		}
	}
	if len(want) < 30 {
		t.Errorf("found only %d errors; this test looks in the wrong place", len(want))
	}
}

func sorted(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

// mustHaveRow requires the beginning of a row on both errors pages.
func mustHaveRow(t *testing.T, begin string) {
	t.Helper()
	for _, page := range []string{errorsPage, translation(errorsPage)} {
		if !strings.Contains(repository.Read(t, page), "\n"+begin) {
			t.Errorf("%s lacks a row that begins %q", page, begin)
		}
	}
}

// TestErrorsPageHasEveryProblem reads the pages that semelhttp.Problems serves.
func TestErrorsPageHasEveryProblem(t *testing.T) {
	get := func(path string) string {
		w := httptest.NewRecorder()
		semelhttp.Problems().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Body.String()
	}
	codes := map[string]bool{}
	for _, m := range regexp.MustCompile(`<a href="(\w+)">`).FindAllStringSubmatch(get("/problems/"), -1) {
		codes[m[1]] = true
		status := regexp.MustCompile(`with status (\d+)`).FindStringSubmatch(get("/problems/" + m[1]))
		if status == nil {
			t.Fatalf("the page of %s has no status", m[1])
		}
		mustHaveRow(t, "| `"+m[1]+"` | "+status[1])
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("\n\\| `(\\w+)` \\| [1-5]\\d\\d").FindAllStringSubmatch(repository.Read(t, errorsPage), -1) {
		if !strings.HasPrefix(m[1], "Err") {
			rows[m[1]] = true
		}
	}
	if diff := cmp.Diff(sorted(codes), sorted(rows)); diff != "" || len(codes) < 10 {
		t.Errorf("%s differs (-code +page):\n%s", errorsPage, diff)
	}
}

// TestErrorsPageHasEveryExitCode reads the constants of the program's exit codes.
func TestErrorsPageHasEveryExitCode(t *testing.T) {
	const dir = "cmd/semel/internal/exit"
	scope, found := compiled(t, dir)[dir].Scope(), 0
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok {
			found++
			mustHaveRow(t, fmt.Sprintf("| %s | ", c.Val()))
		}
	}
	if got := strings.Count(repository.Read(t, errorsPage), "\n| "+"6 | "); found != 7 || got != 1 {
		t.Errorf("found %d exit codes and %d rows of the last one, want 7 and 1", found, got)
	}
}
