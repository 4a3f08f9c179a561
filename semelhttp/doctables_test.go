package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// document is docs/http.md, and docs/http-draft.md below it.
func document(t *testing.T) string {
	t.Helper()
	page := check.Must(os.ReadFile(filepath.Join("..", "docs", "http.md")))(t)
	draft := check.Must(os.ReadFile(filepath.Join("..", "docs", "http-draft.md")))(t)
	return string(page) + string(draft)
}

// rows returns the rows of the table below that heading line whose first cell
// begins with a match of first, as cells without spaces and quotes.
func rows(t *testing.T, header string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(document(t), "\n"+header+"\n")
	if !found {
		t.Fatalf("docs/http.md has no table that begins %q", header)
	}
	var table [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|-") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		table = append(table, cells)
	}
	if len(table) < 4 {
		t.Fatalf("the table %q has %d rows", header, len(table))
	}
	return table
}

// statusesOf returns the statuses in a cell of the first column; others are the
// statuses of "otherwise".
func statusesOf(t *testing.T, cell string, others []int) []int {
	t.Helper()
	var statuses []int
	text, otherwise := strings.CutSuffix(cell, " otherwise")
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), " to ")
		first, err := strconv.Atoi(from)
		last := first
		if ranged && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil {
			t.Fatalf("%q names no statuses", cell)
		}
		for s := first; s <= last; s++ {
			if !otherwise || !slices.Contains(others, s) {
				statuses = append(statuses, s)
			}
		}
	}
	return statuses
}

// TestFinalResponsesAreAsDocumented responds with every status, behind each entry
// point and in each profile, and compares the consequence with docs/http.md.
func TestFinalResponsesAreAsDocumented(t *testing.T) {
	t.Parallel()
	table := rows(t, "| the handler answers | `Atomic` | `Middleware` | `Stripe`, `Atomic` | `Stripe`, `Middleware` |")
	var named []int
	for _, row := range table {
		if strings.Contains(row[0], ",") {
			named = statusesOf(t, row[0], nil)
		}
	}
	covered := map[int]bool{}
	for _, row := range table {
		for _, status := range statusesOf(t, row[0], named) {
			if covered[status] {
				t.Errorf("docs/http.md has %d in two rows", status)
			}
			covered[status] = true
		}
	}
	for status := 200; status < 600; status++ {
		if !covered[status] {
			t.Errorf("docs/http.md does not say what %d is", status)
		}
	}
	for column, way := range []struct {
		profile semelhttp.Profile
		leased  bool
	}{{semelhttp.Lenient, false}, {semelhttp.Lenient, true}, {semelhttp.Stripe, false}, {semelhttp.Stripe, true}} {
		t.Run(fmt.Sprintf("%v, leased %v", way.profile, way.leased), func(t *testing.T) {
			t.Parallel()
			b := newTestEngine(t, semel.Options{})
			for _, row := range table {
				for _, status := range statusesOf(t, row[0], named) {
					for _, onError := range []semel.OnError{semel.Release, semel.Keep} { // which is about errors, not about responses
						if got := b.ledTo(t, profiled(way.profile), way.leased, onError, status); got != row[column+1] {
							t.Errorf("%d, OnError %v, is %s, and docs/http.md says %s", status, onError, got, row[column+1])
						}
					}
				}
			}
		})
	}
}

// ledTo returns the word of docs/http.md for the consequence of a handler's status.
func (b *testEngine) ledTo(t *testing.T, o semelhttp.Options, leased bool, onError semel.OnError, status int) string {
	t.Helper()
	n := new(atomic.Int64)
	op, key := define("op", plain{OnError: onError}), fmt.Sprintf("%d-%d", status, onError)
	protect, err := semelhttp.Atomic(b.Engine, op, o)
	if leased {
		protect, err = semelhttp.Middleware(b.Engine, op, o)
	}
	check.Require(t, err)
	h := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.WriteHeader(status)
	}))
	first := testRequest{key: []string{key}}.direct(t, h)
	state := b.record(t, "op", key).State
	again := testRequest{key: []string{key}}.direct(t, h)
	replayed := again.replayed() && again.status == status && first.status == status && n.Load() == 1
	switch {
	case state == store.Succeeded && replayed:
		return "stored"
	case state == store.Failed && replayed:
		return "failed"
	case (state == store.Absent || state == store.Pending) && n.Load() == 2 && first.status == status:
		return "free"
	case state == store.InDoubt && n.Load() == 1 && first.status == 503 && again.status == 409:
		return "unknown"
	default:
		return fmt.Sprintf("%v after %d runs, answered %d and %d", state, n.Load(), first.status, again.status)
	}
}

// TestEndpointsAreAsDocumented does the same for the results of an endpoint's
// function.
func TestEndpointsAreAsDocumented(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	returned := map[string][]error{
		"a value":                         {nil},
		"`semel.Final(err)`":              {semel.Final(no), semel.Final(&semelhttp.Problem{Status: 409})},
		"`semel.NotCommitted(err)`":       {semel.NotCommitted(no)},
		"another error, a `*Problem` too": {no, &semelhttp.Problem{Status: 409}},
	}
	table := rows(t, "| the function returns | in `semel.DoTx` | in `semel.Do` |")
	for _, row := range table {
		if returned[row[0]] == nil {
			t.Errorf("docs/http.md has the row %q", row[0])
		}
		for _, err := range returned[row[0]] {
			for i, run := range []func(context.Context, *testEngine, semel.Call, error) (int, bool, error){doTx, do} {
				b := newTestEngine(t, semel.Options{})
				h := check.Must(semelhttp.Handle(semelhttp.Endpoint[order, int]{
					Operation: semel.Define("op", semel.OperationOptions[order]{}), Decode: decodeOrder,
					Run: func(ctx context.Context, c semel.Call, _ order) (int, bool, error) {
						return run(ctx, b, c, err)
					},
				}, options()))(t)
				_ = testRequest{body: tea}.direct(t, h)
				state, again := b.record(t, "op", "k1").State, testRequest{body: tea}.direct(t, h)
				want := map[store.State]string{
					store.Succeeded: "stored", store.Failed: "failed", store.Absent: "free", store.Pending: "free", store.InDoubt: "unknown",
				}[state]
				if want != row[i+1] || (want == "stored" || want == "failed") != again.replayed() {
					t.Errorf("%s: %v leads to %v, replayed %v; docs/http.md says %s", row[0], err, state, again.replayed(), row[i+1])
				}
			}
		}
	}
	if len(table) != len(returned) {
		t.Errorf("docs/http.md has %d rows of %d", len(table), len(returned))
	}
}

func doTx(ctx context.Context, b *testEngine, c semel.Call, err error) (int, bool, error) {
	return semel.DoTx(ctx, b.Engine, c, func(context.Context, semelTx) (int, error) { return 7, err })
}

func do(ctx context.Context, b *testEngine, c semel.Call, err error) (int, bool, error) {
	return semel.Do(ctx, b.Engine, c, func(context.Context) (int, error) { return 7, err })
}

// TestCodesAreAsDocumented: each problem with its statuses.
func TestCodesAreAsDocumented(t *testing.T) {
	t.Parallel()
	terms := semelhttp.Terms{Retention: time.Hour}
	lenient, stripe := declared(t, options(), terms).Statuses, declared(t, profiled(semelhttp.Stripe), terms).Statuses
	got, gotStripe := map[string]int{}, map[string]int{}
	for _, row := range rows(t, "| code | status | in `Stripe` | Retry-After | |") {
		code := strings.Trim(row[0], "`")
		got[code], _ = strconv.Atoi(row[1])
		gotStripe[code], _ = strconv.Atoi(row[2])
	}
	if diff := cmp.Diff(lenient, got); diff != "" {
		t.Errorf("docs/http.md differs (-code +document):\n%s", diff)
	}
	if diff := cmp.Diff(stripe, gotStripe); diff != "" {
		t.Errorf("docs/http.md differs in the stripe profile (-code +document):\n%s", diff)
	}
}

// TestModesAreAsDocumented: docs/http.md says about two requests what
// TestFingerprintModes checks.
func TestModesAreAsDocumented(t *testing.T) {
	t.Parallel()
	all := modes(t)
	for _, row := range rows(t, "| the second request differs in | as sent | `JSONFields()` | `JSONFields(\"amount\", \"currency\")` |") {
		m, ok := all[row[0]]
		if want := []string{m.bytes, m.whole, m.fields}; !ok || !slices.Equal(row[1:], want) {
			t.Errorf("docs/http.md says %q of %s, want %q", row[1:], row[0], want)
		}
	}
}

// TestDeclarationIsAsDocumented: the example is the served text.
func TestDeclarationIsAsDocumented(t *testing.T) {
	t.Parallel()
	h := check.Must(semelhttp.Declare(options(), semelhttp.Terms{Retention: 24 * time.Hour}))(t)
	if served := (testRequest{method: "GET"}).direct(t, h).body; !strings.Contains(document(t), "```json\n"+served+"```\n") {
		t.Errorf("docs/http.md lacks the declaration as it is served:\n%s", served)
	}
}

// TestEachLineOfTheDraftIsShown: every line names tests that exist.
func TestEachLineOfTheDraftIsShown(t *testing.T) {
	t.Parallel()
	exist := testNames(t)
	shown := map[string]bool{}
	for _, row := range rows(t, "| | what holds | shown by |") {
		shown[row[0]] = true
		names := regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 || row[1] == "" {
			t.Errorf("line %s is shown by nothing", row[0])
		}
		for _, name := range names {
			if !exist[name[1]] {
				t.Errorf("line %s is shown by %s, which does not exist", row[0], name[1])
			}
		}
	}
	for i := range 50 {
		if !shown[strconv.Itoa(i+1)] {
			t.Errorf("docs/http.md has no line %d", i+1)
		}
	}
	for i := range 13 {
		if !shown[fmt.Sprintf("S%d", i+1)] {
			t.Errorf("docs/http.md has no line S%d", i+1)
		}
	}
	if len(shown) != 63 {
		t.Errorf("docs/http.md has the lines %q", slices.Sorted(maps.Keys(shown)))
	}
}

// testNames returns the names of the tests of this package, of the client and of what both spell.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	server := check.Must(filepath.Glob("*_test.go"))(t)
	client := check.Must(filepath.Glob("client/*_test.go"))(t)
	shared := check.Must(filepath.Glob("internal/wire/*_test.go"))(t)
	files := slices.Concat(server, client, shared)
	names := map[string]bool{}
	for _, file := range files {
		f := check.Must(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}
