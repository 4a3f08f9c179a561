//go:build !race

package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// pollers are the directories whose tests may wait in a loop.
var pollers = []string{
	"bench/",                // programs that measure time
	"internal/groupcommit/", // tests how a batch yields to the scheduler
	"store/postgres/partition_bulk_drop_test.go", // measures calls beside a long statement
}

// TestNoPollingInTests: a test waits for an event or runs in a testing/synctest
// bubble. What has no event is polled by realtest.Poll and realtest.Retry.
func TestNoPollingInTests(t *testing.T) {
	bubbles := make(map[string]bool) // directories; time in a bubble is not real
	var tests []goFile
	for _, f := range goFiles(t) {
		if !strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for _, i := range f.ast.Imports {
			bubbles[path.Dir(f.name)] = bubbles[path.Dir(f.name)] || i.Path.Value == `"testing/synctest"`
		}
		if !slices.ContainsFunc(pollers, func(dir string) bool { return strings.HasPrefix(f.name, dir) }) {
			tests = append(tests, f)
		}
	}
	for _, f := range tests {
		for _, call := range polls(f.ast) {
			if !bubbles[path.Dir(f.name)] || call.name == "runtime.Gosched" {
				t.Errorf("%s:%d: %s in a loop, want an event or realtest.Poll", f.name, f.line(call.Pos()), call.name)
			}
		}
	}
}

type namedCall struct {
	*ast.CallExpr

	name string
}

// polls returns the calls within loops that wait for a time, and all calls of
// NewTicker, because a ticker is made for a loop. Tests use time.Tick for the rate of
// a load.
func polls(f *ast.File) (calls []namedCall) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			calls = append(calls, waits(n.Body)...)
		case *ast.RangeStmt:
			calls = append(calls, waits(n.Body)...)
		case *ast.CallExpr:
			if name := nameOf(n); name == "time.NewTicker" {
				calls = append(calls, namedCall{n, name})
			}
		}
		return true
	})
	return calls
}

// waits returns the calls in the body of a loop that wait for a time. A function
// literal in the body runs elsewhere.
func waits(body *ast.BlockStmt) (calls []namedCall) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt: // inner loops are inspected on their own
			return false
		case *ast.CallExpr:
			switch name := nameOf(n); name {
			case "time.After", "time.Sleep", "time.NewTimer", "runtime.Gosched":
				calls = append(calls, namedCall{n, name})
			}
		}
		return true
	})
	return calls
}

// nameOf returns the name of a function of another package, such as "time.After".
func nameOf(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	p, ok := f.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return p.Name + "." + f.Sel.Name
}

// TestPollsAreFound tests the rule itself.
func TestPollsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		"for !done() { time.Sleep(1) }":                             1,
		"for range 3 { for { <-time.After(1) } }":                   1,
		"for { select { case <-time.After(1): } }":                  1,
		"ticks := time.NewTicker(1); for { <-ticks.C }":             1,
		"for range 3 { go func() { <-time.After(1) }() }":           0,
		"<-time.After(1); for { f() }":                              0,
		"for range 3 { go func() { for { runtime.Gosched() } }() }": 1,
	} {
		f := check.Must(parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {"+body+"}", 0))(t)
		check.Equal(t, len(polls(f)), want, "%s: calls are found", body)
	}
}
