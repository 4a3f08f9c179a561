package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// module is cut from the front of package names.
const module = "github.com/semelgo/semel"

// printer says what happens, a line per package.
type printer struct {
	out     io.Writer
	tally   *tally
	started time.Time
}

// event takes one event and reports whether something was printed.
func (p *printer) event(e event) bool {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(p.out, e.Output)
		return true
	case e.Package == "":
		return false
	case e.Test != "":
		p.tally.test(e)
		return false
	}
	switch e.Action {
	case "start":
		p.tally.of(e.Package)
	case "output":
		r := p.tally.of(e.Package)
		r.rest = append(r.rest, e.Output)
	case "pass", "fail", "skip":
		p.packageEnd(e, p.tally.endPackage(e.Package, e.Action == "fail"))
		return true
	}
	return false
}

func (p *printer) packageEnd(e event, r *running) {
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "--  "}[e.Action]
	fmt.Fprintf(p.out, "%s %-28s %6.1fs  %s\n", word, p.short(e.Package), e.Elapsed, tests(r))
	for _, line := range r.notes {
		fmt.Fprintf(p.out, "       %s\n", line)
	}
	if e.Action != "fail" {
		return
	}
	for _, line := range append(r.failed, r.rest...) {
		fmt.Fprint(p.out, "  | ", line)
	}
}

// tests says how many of a package's tests ended in which way.
func tests(r *running) string {
	if len(r.counts) == 0 {
		return "no tests"
	}
	parts := make([]string, 0, 3)
	for _, c := range [...]struct {
		status status
		word   string
	}{{statusPass, "passed"}, {statusFail, "failed"}, {statusSkip, "skipped"}} {
		if n := r.counts[c.status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c.word))
		}
	}
	return strings.Join(parts, ", ")
}

// progress names what is running, when nothing was said for a while.
func (p *printer) progress() {
	names := make([]string, 0, len(p.tally.running))
	for pkg, r := range p.tally.running {
		name := p.short(pkg)
		if r.last != "" {
			name += " " + r.last
		}
		names = append(names, name)
	}
	slices.Sort(names)
	what := "building"
	if len(names) > 0 {
		what = strings.Join(names, " · ")
	}
	fmt.Fprintf(p.out, "...  %s: %s\n", time.Since(p.started).Round(time.Second), what)
}

// summary prints the closing lines.
func (p *printer) summary() {
	engines := slices.Sorted(maps.Keys(p.tally.engines))
	if len(engines) == 0 {
		engines = []string{"none"}
	}
	fmt.Fprintf(p.out, "\ntook: %s\n", time.Since(p.started).Round(time.Second))
	for _, id := range p.tally.with(statusSkip) {
		fmt.Fprintf(p.out, "skipped: %s %s%s\n", p.short(id.pkg), id.name, p.tally.reasons[id])
	}
	for _, id := range p.tally.with(statusFail) {
		fmt.Fprintf(p.out, "failed: %s %s\n", p.short(id.pkg), id.name)
	}
	fmt.Fprintf(p.out, "engines: %s\n", strings.Join(engines, " "))
	fmt.Fprintf(p.out, "%d passed, %d failed, %d skipped\n",
		p.tally.count(statusPass), p.tally.count(statusFail), p.tally.count(statusSkip))
}

func (p *printer) short(pkg string) string {
	if pkg == module {
		return "semel"
	}
	return strings.TrimPrefix(pkg, module+"/")
}
