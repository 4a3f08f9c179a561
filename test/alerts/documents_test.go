package alerts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// docs returns the path of a file below docs.
func docs(name ...string) string {
	return filepath.Join(append([]string{"..", "..", "docs"}, name...)...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(check.Must(os.ReadFile(path))(t))
}

// alert is an alert of the file of rules.
type alert struct{ name, severity, runbook string }

var alertForm = regexp.MustCompile(`(?s)- alert: (\w+)\n.*?severity: (\w+).*?runbook_url: \S+/docs/observability\.md#(\w+)`)

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	text := read(t, docs("observability", "alerts.yml"))
	for _, m := range alertForm.FindAllStringSubmatch(text, -1) {
		all = append(all, alert{m[1], m[2], m[3]})
	}
	check.Equal(t, len(all), strings.Count(text, "- alert: "), "alerts with a severity and a runbook")
	return all
}

// TestRules: promtool accepts the rules.
func TestRules(t *testing.T) {
	t.Parallel()
	realtest.CheckRules(t, docs("observability", "alerts.yml"))
}

// TestRunbooks: each alert has a row in the table and a runbook, in both languages, and the
// page has no others.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	want := alerts(t)
	for page, parts := range map[string][]string{
		"observability.md":       {"**Meaning.**", "**Check.**", "**Do.**"},
		"observability.zh-CN.md": {"**含义。**", "**检查。**", "**处理。**"},
	} {
		text := read(t, docs(page))
		var rows []alert
		for _, m := range regexp.MustCompile(`(?m)^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \|`).FindAllStringSubmatch(text, -1) {
			rows = append(rows, alert{m[1], m[3], m[2]})
		}
		if diff := cmp.Diff(want, rows, cmp.AllowUnexported(alert{})); diff != "" {
			t.Errorf("the table of %s differs from alerts.yml (-rules +page):\n%s", page, diff)
		}
		headings := 0
		for _, section := range strings.Split(text, "\n### ")[1:] {
			name, body, _ := strings.Cut(section, "\n")
			headings++
			if !slices.ContainsFunc(want, func(a alert) bool { return a.name == name && a.runbook == strings.ToLower(name) }) {
				t.Errorf("%s has a runbook of %q, which is no alert", page, name)
			}
			for _, part := range parts {
				if strings.Count(body, part) != 1 {
					t.Errorf("the runbook of %s in %s has not one %s", name, page, part)
				}
			}
		}
		check.Equal(t, headings, len(want), "runbooks of %s", page)
	}
}

// TestRulesWithoutCounts: promtool accepts the rules of the page for stores that cannot count,
// and they replace alerts that exist.
func TestRulesWithoutCounts(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"observability.md", "observability.zh-CN.md"} {
		_, text, found := strings.Cut(read(t, docs(page)), "```yaml\n")
		rules, _, closed := strings.Cut(text, "```\n")
		check.Equal(t, found && closed, true, "%s has the rules", page)
		path := filepath.Join(t.TempDir(), "rules.yml")
		check.Require(t, os.WriteFile(path, []byte(rules), 0o600))
		realtest.CheckRules(t, path)
		replaced := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
		check.Equal(t, len(replaced), 2, "rules of %s", page)
		for _, m := range replaced {
			check.Equal(t, slices.ContainsFunc(alerts(t), func(a alert) bool { return a.name == m[1] }), true, "%s is an alert", m[1])
		}
	}
}

var metricForm = regexp.MustCompile(`\bsemel_[a-z_]+`)

// queried returns the names of the metrics that the alerts and the dashboard query. The names of
// labels are left out.
func queried(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	check.Require(t, json.Unmarshal([]byte(read(t, docs("observability", "dashboard.json"))), &dashboard))
	var names []string
	for _, m := range regexp.MustCompile(`(?m)expr: (.*)$`).FindAllStringSubmatch(read(t, docs("observability", "alerts.yml")), -1) {
		names = append(names, metricForm.FindAllString(m[1], -1)...)
	}
	for _, p := range dashboard.Panels {
		found := 0
		for _, target := range p.Targets {
			found += len(metricForm.FindAllString(target.Expr, -1))
			names = append(names, metricForm.FindAllString(target.Expr, -1)...)
		}
		if found == 0 {
			t.Errorf("the panel %q of the dashboard queries no metric of ours", p.Title)
		}
	}
	labels := []string{"semel_operation", "semel_event", "semel_outcome", "semel_state"}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(labels, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// TestQueriesUseDocumentedMetrics: a query for a metric that the table of metrics does not have
// would always be empty.
func TestQueriesUseDocumentedMetrics(t *testing.T) {
	t.Parallel()
	var known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(semel\\.[a-z_.]+)` \\| (\\w+) \\| `([^`]+)` \\|").FindAllStringSubmatch(read(t, docs("observability.md")), -1) {
		name := strings.ReplaceAll(m[1], ".", "_")
		if m[3] == "s" {
			name += "_seconds"
		}
		switch m[2] {
		case "counter":
			known = append(known, name+"_total")
		case "histogram":
			known = append(known, name+"_bucket", name+"_count", name+"_sum")
		default:
			known = append(known, name)
		}
	}
	for _, name := range queried(t) {
		if !slices.Contains(known, name) {
			t.Errorf("a query uses %s, which is no metric of the table", name)
		}
	}
	if len(known) < 12 {
		t.Errorf("the table has the metrics %q: this test looks in the wrong place", known)
	}
}
