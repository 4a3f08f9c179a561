package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

type status int

// Over several runs of one test, the highest status stands: a pass tells more
// than a skip, and a failure more than either.
const (
	statusSkip status = iota + 1
	statusPass
	statusFail
)

type testID struct{ pkg, name string }

// tally collects what happened, over all passes.
type tally struct {
	results map[testID]status
	reasons map[testID]string // why a test was skipped
	engines map[string]bool
	running map[string]*running
}

// running is a package whose tests are running.
type running struct {
	open   map[string][]string // output of the tests that have not ended
	failed []string            // output of those that failed
	rest   []string            // output of no test
	notes  []string            // attributes other than engines
	counts map[status]int
	last   string // the test that started last
}

func newTally() *tally {
	return &tally{
		results: make(map[testID]status),
		reasons: make(map[testID]string),
		engines: make(map[string]bool),
		running: make(map[string]*running),
	}
}

func (t *tally) of(pkg string) *running {
	r := t.running[pkg]
	if r == nil {
		r = &running{open: make(map[string][]string), counts: make(map[status]int)}
		t.running[pkg] = r
	}
	return r
}

// test takes an event of one test.
func (t *tally) test(e event) {
	r := t.of(e.Package)
	switch e.Action {
	case "run":
		r.open[e.Test], r.last = []string{}, e.Test
	case "output":
		r.open[e.Test] = append(r.open[e.Test], e.Output)
	case "attr":
		t.attr(r, e)
	case "pass":
		t.end(e, r, statusPass)
	case "skip":
		t.reasons[testID{e.Package, e.Test}] = reason(r.open[e.Test])
		t.end(e, r, statusSkip)
	case "fail":
		r.failed = append(r.failed, r.open[e.Test]...)
		t.end(e, r, statusFail)
	}
}

func (t *tally) attr(r *running, e event) {
	if e.Key == "engine" {
		t.engines[e.Value] = true
		return
	}
	r.notes = append(r.notes, e.Test+": "+e.Key+" "+e.Value)
}

func (t *tally) end(e event, r *running, s status) {
	delete(r.open, e.Test)
	r.counts[s]++
	id := testID{e.Package, e.Test}
	t.results[id] = max(t.results[id], s)
}

// endPackage takes the end of a package. Tests that never ended went down with
// their process; a package that failed without a failed test counts as one.
func (t *tally) endPackage(pkg string, failed bool) *running {
	r := t.of(pkg)
	delete(t.running, pkg)
	if !failed {
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(r.open)) {
		r.failed = append(r.failed, r.open[name]...)
		t.end(event{Package: pkg, Test: name}, r, statusFail)
	}
	if r.counts[statusFail] == 0 {
		t.end(event{Package: pkg}, r, statusFail)
	}
	return r
}

func (t *tally) count(s status) int { return len(t.with(s)) }

// reason finds what a skipped test said.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			return ": " + line
		}
	}
	return ""
}

// with lists the tests that ended so, in order.
func (t *tally) with(s status) []testID {
	var ids []testID
	for id, have := range t.results {
		if have == s {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b testID) int {
		return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.name, b.name))
	})
	return ids
}
