package conform

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report has the results of all cases.
type Report struct {
	Profile       string          `json:"profile"`
	Specification string          `json:"specification"`
	Counts        map[Verdict]int `json:"counts"`
	Results       []Result        `json:"results"`
}

// Result is the result of one case.
type Result struct {
	ID      string   `json:"id"`
	Level   Level    `json:"level"`
	Source  string   `json:"source"`
	Says    string   `json:"says"`
	Fields  []string `json:"fields,omitempty"`
	Verdict Verdict  `json:"verdict"`
	// Detail is the observation, or the reason why there is none.
	Detail string `json:"detail,omitempty"`
	// Exchanges are the last exchanges of a case that failed or warns.
	Exchanges []Exchange `json:"exchanges,omitempty"`
}

// verdicts lists the verdicts in the order of reports.
func verdicts() []Verdict { return []Verdict{Pass, Fail, Warn, NotShown, Info} }

func (r *Report) count() {
	r.Counts = make(map[Verdict]int)
	for _, v := range verdicts() {
		r.Counts[v] = 0
	}
	for _, one := range r.Results {
		r.Counts[one.Verdict]++
	}
}

// With returns the results with one of the verdicts.
func (r *Report) With(verdicts ...Verdict) []Result {
	var found []Result
	for _, one := range r.Results {
		if slices.Contains(verdicts, one.Verdict) {
			found = append(found, one)
		}
	}
	return found
}

// WriteText writes r for people: one line, and the detail if the case did not
// pass. With all it also writes the detail of passed cases and the members of
// the profile that affect the case.
func (r Result) WriteText(w io.Writer, all bool) {
	fmt.Fprintf(w, "%-8s  %3s  %-8s  %s\n", r.Verdict, r.ID, r.Level, r.Says)
	if r.Detail != "" && (all || r.Verdict != Pass) {
		fmt.Fprintf(w, "%25s%s\n", "", r.Detail)
	}
	if all && len(r.Fields) > 0 {
		fmt.Fprintf(w, "%25sdepends on the profile's %s\n", "", strings.Join(r.Fields, ", "))
	}
	for _, x := range r.Exchanges {
		fmt.Fprintf(w, "%25s%s\n%25s  -> %s\n", "", x.Request, "", x.Answer)
	}
}

// Summary writes the counts by level, and the problems, for people.
func (r *Report) Summary(w io.Writer) {
	fmt.Fprintf(w, "\n%-10s", "")
	for _, v := range verdicts() {
		fmt.Fprintf(w, "%10s", v)
	}
	fmt.Fprintln(w)
	for _, l := range []Level{Must, Should, May, Security, Promise, Client} {
		counts := make(map[Verdict]int)
		for _, one := range r.Results {
			if one.Level == l {
				counts[one.Verdict]++
			}
		}
		if len(counts) == 0 {
			continue
		}
		fmt.Fprintf(w, "%-10s", l)
		for _, v := range verdicts() {
			fmt.Fprintf(w, "%10d", counts[v])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%s\n", r.headline())
}

// headline returns the report as one sentence.
func (r *Report) headline() string {
	ids := func(v Verdict) string {
		var all []string
		for _, one := range r.With(v) {
			all = append(all, one.ID)
		}
		return strings.Join(all, ", ")
	}
	parts := []string{fmt.Sprintf("profile %s: %d cases, %d passed", r.Profile, len(r.Results), r.Counts[Pass])}
	for _, v := range []Verdict{Fail, Warn, NotShown, Info} {
		if r.Counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", v, ids(v)))
		}
	}
	return strings.Join(parts, "; ")
}

// Markdown writes the report as a table for the documentation.
func (r *Report) Markdown(w io.Writer) {
	fmt.Fprintf(w, "%s.\n\n", capitalize(r.headline()))
	fmt.Fprintf(w, "| case | level | statement | verdict | observation |\n|---|---|---|---|---|\n")
	for _, one := range r.Results {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", one.ID, one.Level, cell(one.Says), one.Verdict, cell(one.Detail))
	}
}

// List writes the cases as a table for the documentation, with the members of
// the profile and the parts of the fixture contract that each needs.
func List(w io.Writer, cases []Case) {
	fmt.Fprintf(w, "| case | level | from | statement | depends on | needs |\n|---|---|---|---|---|---|\n")
	for _, c := range cases {
		fields := strings.Join(c.Fields, ", ")
		needs := strings.Join(c.needs, ", ")
		if needs == "" {
			needs = "any endpoint"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", c.ID, c.Level, c.Source, cell(c.Says), fields, needs)
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
