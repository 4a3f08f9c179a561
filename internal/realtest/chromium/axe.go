package chromium

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semelgo/semel/internal/check"
)

// Axe returns the findings of axe-core on the page, light and dark. The variable SEMEL_AXE is the
// path of axe.min.js; without it Axe returns none.
func (b *Tab) Axe(t *testing.T) (findings []string) {
	t.Helper()
	name := os.Getenv("SEMEL_AXE")
	if name == "" {
		return nil
	}
	script := string(check.Must(os.ReadFile(name))(t)) + `
;axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.failureSummary + " " + n.html.slice(0, 120))))`
	for _, scheme := range []string{"light", "dark"} {
		b.Scheme(t, scheme)
		found, err := chromedp.Run(b.Ctx, chromedp.Evaluate[[]string](script, chromedp.EvalAwaitPromise))
		check.Require(t, err, "axe")
		for _, f := range found {
			findings = append(findings, scheme+": "+f)
		}
	}
	return findings
}
