package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/machine"
)

// Page writes the text of latest.md.
func Page(w io.Writer, quick bool, m machine.Machine, results []goal.Result) error {
	how := "by `make bench`"
	if quick {
		how = "by `make bench QUICK=1`, which is less exact than a whole run"
	}
	fmt.Fprintf(w, "# What was measured\n\nMade %s. [docs/performance.md](../../docs/performance.md) says how.\n\n", how)
	for _, line := range m.Lines() {
		fmt.Fprintf(w, "- %s\n", line)
	}
	fmt.Fprintln(w)
	return Table(w, results)
}

// Table writes the results as Markdown: a table, and below it the details.
func Table(w io.Writer, results []goal.Result) error {
	var b strings.Builder
	b.WriteString("| | what | value | must | aim | to the aim |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			mark(r), r.Name, Value(r), bar(r.Row, r.Must), bar(r.Row, r.Aim), toAim(r))
	}
	b.WriteString("\n")
	for _, r := range results {
		fmt.Fprintf(&b, "- **%s**: %s\n", r.Name, r.Detail)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mark is a word, because not every reader can see colours.
func mark(r goal.Result) string {
	switch {
	case r.Missing:
		return "not measured"
	case !r.Met():
		return "**missed**"
	case r.Must == nil:
		return "shown"
	case r.Aim != nil && r.AimMet():
		return "aim"
	default:
		return "must"
	}
}

// Value formats a result's value with its unit.
func Value(r goal.Result) string {
	if r.Missing {
		return "–"
	}
	return figure(r.Value, r.Unit)
}

func bar(r goal.Row, v *float64) string {
	switch {
	case v == nil:
		return ""
	case r.Least:
		return "≤ " + figure(*v, r.Unit)
	default:
		return "≥ " + figure(*v, r.Unit)
	}
}

func figure(v float64, unit string) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 1000 {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit == "x" {
		return text + "×"
	}
	return text + " " + unit
}

func toAim(r goal.Result) string {
	switch {
	case r.Missing || r.Aim == nil:
		return ""
	case r.AimMet():
		return "reached"
	default:
		return fmt.Sprintf("%.0f %% off", 100*r.Short())
	}
}
