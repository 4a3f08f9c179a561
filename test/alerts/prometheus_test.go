package alerts_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/metricsserver"
	"github.com/semelgo/semel/internal/realtest"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store/sqlite"
)

// rulesInAHurry are the rules with the durations of a test: two minutes for the past, and a second
// for how long an alert must last and for the age of queues.
func rulesInAHurry(t *testing.T) string {
	t.Helper()
	text := read(t, docs("observability", "alerts.yml"))
	for form, hurried := range map[string]string{`(offset |\[)15m`: "${1}120s", `for: \w+`: "for: 1s", `> 300`: "> 1"} {
		if !regexp.MustCompile(form).MatchString(text) {
			t.Errorf("the rules have no %s", form)
		}
		text = regexp.MustCompile(form).ReplaceAllString(text, hurried)
	}
	return text
}

// fired is an alert that Prometheus reports.
type fired struct {
	Labels      map[string]string
	Annotations map[string]string
	State       string
}

// monitoring is a Prometheus that scrapes this process.
type monitoring struct{ *realtest.PrometheusServer }

// firing returns the alerts that fire.
func (m monitoring) firing(t *testing.T) []fired {
	t.Helper()
	var data struct{ Alerts []fired }
	m.Get(t, "/api/v1/alerts", &data)
	return slices.DeleteFunc(data.Alerts, func(a fired) bool { return a.State != "firing" })
}

// has reports whether a query has a result.
func (m monitoring) has(t *testing.T, query string) bool {
	t.Helper()
	var data struct{ Result []any }
	m.Get(t, "/api/v1/query?query="+url.QueryEscape(query), &data)
	return len(data.Result) > 0
}

// serveMetrics serves the metrics of this process until the test ends.
func serveMetrics(t *testing.T, system string) *metricsserver.Server {
	t.Helper()
	s := check.Must(metricsserver.Listen(t.Context(), "127.0.0.1:0", semelotel.Options{System: system}, slog.New(slog.DiscardHandler)))(t)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Close()
		check.NoError(t, <-ended)
	})
	return s
}

// scraping starts a Prometheus that scrapes the servers.
func scraping(t *testing.T, servers ...*metricsserver.Server) monitoring {
	t.Helper()
	var targets []string
	for _, s := range servers {
		at := check.Must(url.Parse(s.URL()))(t)
		targets = append(targets, at.Host)
	}
	return monitoring{realtest.OwnPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 200ms, evaluation_interval: 200ms}
rule_files: [rules.yml]
scrape_configs:
  - job_name: shop
    static_configs: [{targets: [%s]}]
`, strings.Join(targets, ", ")), rulesInAHurry(t))}
}

// newStore returns a store over a new file, and its database.
func newStore(t *testing.T) (*sqlite.Store, *sql.DB) {
	t.Helper()
	db := check.Must(sqlite.Open(t.TempDir() + "/shop.db"))(t)
	t.Cleanup(func() { _ = db.Close() }) // one of them is closed by the test
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	return sqlite.New(db, sqlite.Options{}), db
}

// TestAlertsFire: while all is well, no alert fires. Each failure then makes its alert fire, for
// the operation that failed.
func TestAlertsFire(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	server, other := serveMetrics(t, "sqlite"), serveMetrics(t, "closed")
	s := newShop(t, server.Telemetry)
	closedStore, closed := newStore(t)
	stopOther := watched(t, other.Telemetry, newEngine(t, closedStore, other.Telemetry))
	s.isWell(t)
	m := scraping(t, server, other)
	realtest.Poll(t, "the first evaluation", func() bool {
		return m.has(t, `semel:events:increase15m`) && m.has(t, `semel_watch_up{db_system_name="closed"}`) && m.has(t, `semel_watch_up{db_system_name="sqlite"}`)
	})
	realtest.Poll(t, "evaluations for longer than an alert must last", func() bool {
		return m.has(t, `semel:events:increase15m offset 3s`)
	})
	lateScrape := func(a fired) bool { // the next scrape resolves it
		return a.Labels["alertname"] == "SemelStoreNotWatched" || a.Labels["alertname"] == "SemelStoreNotRead"
	}
	if early := slices.DeleteFunc(m.firing(t), lateScrape); len(early) > 0 {
		t.Errorf("alerts fire although all is well: %v", early)
	}
	realtest.Poll(t, "another scrape", func() bool { return !slices.ContainsFunc(m.firing(t), lateScrape) })

	check.Require(t, closed.Close())
	s.fails(t)
	want := map[string]string{ // the operation, where the alert names one
		"SemelOutcomeUnknown": "unknown", "SemelOutcomeContradicted": "contradicted", "SemelOutcomeDropped": "unrecorded",
		"SemelOutcomeNotRecorded": "unrecorded", "SemelResultAltered": "altered", "SemelDeadLetters": "given_up",
		"SemelQueueStuck": "stuck", "SemelExpiredLeases": "interrupted", "SemelEventsLate": "", "SemelEventsParked": "",
		"SemelLeasesLost": "interrupted", "SemelProcessesCrash": "crashing", "SemelKeysReused": "reused",
		"SemelStoreUnavailable": "", "SemelMayLoseRecords": "", "SemelStoreNotRead": "",
	}
	seen := map[string]bool{}
	waitFor := func(names map[string]string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_ = realtest.Retry(ctx, func() bool { // what is missing is reported at the end
			for _, a := range m.firing(t) {
				name := a.Labels["alertname"]
				if operation, known := names[name]; known && a.Labels["semel_operation"] == operation && !strings.Contains(fmt.Sprint(a.Annotations), "<no value>") {
					seen[name] = true
				}
			}
			for name := range names {
				if !seen[name] {
					return false
				}
			}
			return true
		})
	}
	waitFor(want)
	m.wantMetrics(t)

	check.NoError(t, s.stop(), "end the watch")
	check.NoError(t, stopOther(), "end the watch")
	waitFor(map[string]string{"SemelStoreNotWatched": ""})
	for _, a := range alerts(t) {
		if !seen[a.name] {
			t.Errorf("%s did not fire for %q", a.name, want[a.name])
		}
	}
}

// wantMetrics wants each metric that a query uses to exist in Prometheus.
func (m monitoring) wantMetrics(t *testing.T) {
	t.Helper()
	var names []string
	m.Get(t, "/api/v1/label/__name__/values", &names)
	for _, name := range queried(t) {
		if !slices.Contains(names, name) {
			t.Errorf("Prometheus has no metric %s", name)
		}
	}
}
