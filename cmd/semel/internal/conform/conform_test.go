package conform_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/internal/check"
)

// hold runs all cases against the server at address.
func hold(t *testing.T, address string, p *conform.Profile, o conform.Options) *conform.Report {
	t.Helper()
	report, err := conform.Run(t.Context(), []string{address}, p, o)
	check.Require(t, err, "Run")
	return report
}

// brief are options with fewer concurrent requests than the default.
func brief() conform.Options { return conform.Options{RaceSize: 10, QuickRounds: 10} }

// TestConformingServersPass: the suite works without Semel. Every case that can
// be tested on a server is tested on the first of these. The other servers lack
// something, and the cases that need it are not shown.
func TestConformingServersPass(t *testing.T) {
	t.Parallel()
	for _, right := range rightServers() {
		t.Run(joined(right.otherFlaws), func(t *testing.T) {
			t.Parallel()
			address, p := newFakeServer(t, right.otherFlaws...)
			report := hold(t, address, p, brief())
			for _, r := range report.With(conform.Fail, conform.Warn, conform.Info) {
				t.Errorf("case %s: %s: %s", r.ID, r.Verdict, r.Detail)
			}
			var got []string
			for _, r := range report.With(conform.NotShown) {
				if r.Level != conform.Client {
					got = append(got, r.ID)
				}
			}
			if want := strings.Fields(right.notShown); !slices.Equal(got, want) {
				t.Errorf("cases %q are not shown, want %q", got, want)
			}
		})
	}
}

func joined(flaws []flaw) string {
	var all []string
	for _, f := range flaws {
		all = append(all, string(f))
	}
	return strings.Join(all, ", and ")
}

// TestEachFlawFailsItsCases: each flaw fails the cases about it and no others.
func TestEachFlawFailsItsCases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for _, wrong := range wrongServers() {
		t.Run(joined(append([]flaw{wrong.flaw}, wrong.otherFlaws...)), func(t *testing.T) {
			t.Parallel()
			address, p := newFakeServer(t, append([]flaw{wrong.flaw}, wrong.otherFlaws...)...)
			may := strings.Fields(wrong.may)
			var got []string
			report := hold(t, address, p, brief())
			for _, r := range report.With(conform.Fail, conform.Warn, conform.Info) {
				if !slices.Contains(may, r.ID) {
					got = append(got, r.ID)
				}
				t.Logf("%s: %s: %s", r.Verdict, r.ID, r.Detail)
			}
			if want := strings.Fields(wrong.fails); !slices.Equal(got, want) {
				t.Errorf("fails %q, want %q", got, want)
			}
		})
	}
}

// TestDeclaredBehaviorPasses: behavior that the draft leaves open passes if the
// server declares it.
func TestDeclaredBehaviorPasses(t *testing.T) {
	t.Parallel()
	address, p := newFakeServer(t, rawKeys, waits, storesServerErrors, sharesPrincipals, sharesRoutes, runsWithoutKey,
		noMarker, fingerprintsByValue, replaysWithoutPermission, mismatchIs409, runsOldKeys)
	p.Key.Forms, p.Key.Time, p.AfterRetention, p.InProgress = []string{"raw"}, "", "run", "wait"
	p.ServerErrors, p.Scope, p.OtherOperation, p.Required = "stored", "shared", "mismatch", false
	p.ReplayHeader, p.Reauthorizes, p.Fingerprint.Body = "", false, "json"
	p.Statuses["key_reused"] = 409
	report := hold(t, address, p, brief())
	for _, r := range report.With(conform.Fail, conform.Warn) {
		t.Errorf("case %s: %s: %s", r.ID, r.Verdict, r.Detail)
	}
	var open []string
	for _, r := range report.With(conform.Info, conform.NotShown) {
		open = append(open, r.ID)
	}
	if want := []string{"20", "35", "36", "39", "42", "44", "46"}; !slices.Equal(open, want) {
		t.Errorf("not shown or info: %q, want %q", open, want)
	}
}

// TestSeveralProcesses: the race uses all processes, and detects that two
// servers that share nothing have two effects.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	one, p := newFakeServer(t)
	other, _ := newFakeServer(t)
	o := brief()
	o.Only = []string{"30"}
	report, err := conform.Run(t.Context(), []string{one, other}, p, o)
	check.Require(t, err)
	if r := report.Results[0]; r.Verdict != conform.Fail {
		t.Errorf("case 30 on two servers that share nothing: %s: %s", r.Verdict, r.Detail)
	}
	if report, err = conform.Run(t.Context(), []string{one, one}, p, o); err != nil || report.Results[0].Verdict != conform.Pass {
		t.Errorf("one server under two addresses: %v, %v", report, err)
	}
}
