package semelotel_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelotel"
)

// collected are all metrics that a reader collects, by name.
func (r *rig) collected(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	check.Require(t, r.reader.Collect(t.Context(), &all))
	found := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// point is a value of a metric, or the number of values of a histogram.
type point struct {
	attributes attribute.Set
	value      float64
}

func pointsOf(m metricdata.Metrics) (all []point) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, float64(p.Value)})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, float64(p.Value)})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, p.Value})
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, float64(p.Count)})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, float64(p.Count)})
		}
	}
	return all
}

// points are the values of a metric by its attributes but the system.
func points(m metricdata.Metrics) map[string]float64 {
	all := make(map[string]float64)
	for _, p := range pointsOf(m) {
		var names []string
		for _, kv := range p.attributes.ToSlice() {
			if kv.Key != "db.system.name" {
				names = append(names, kv.Value.Emit())
			}
		}
		all[strings.Join(names, " ")] = p.value
	}
	return all
}

// attributesOf are the names of the attributes of a metric.
func attributesOf(m metricdata.Metrics) string {
	names := make(map[string]bool)
	for _, p := range pointsOf(m) {
		for _, kv := range p.attributes.ToSlice() {
			names[string(kv.Key)] = true
		}
	}
	delete(names, "db.system.name") // all have it
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// busyRig is an engine in which everything has happened that a metric counts.
func busyRig(t *testing.T) *rig {
	t.Helper()
	waiting := semel.Define("waiting", semel.OperationOptions[string]{Wait: time.Millisecond})
	spent := semel.Define("spent", semel.OperationOptions[string]{
		Policy: semel.AtLeastOnce(), Retry: &semel.Retry{MaxErrors: 1, Redelivered: true},
	})
	r := newRig(t, semel.Options{Operations: []semel.Declared{mail}})
	r.watch(t, r)
	ctx, errBoom := t.Context(), errors.New("boom")
	for range 2 { // a run and a replay
		_, _, err := semel.DoTx(ctx, r.Engine, order.Call(shop, "1", "a"), func(ctx context.Context, tx *sql.Tx) (string, error) {
			return "a", outbox.AppendTx(ctx, r.Engine, tx, outbox.Event{Topic: "orders", Aggregate: "1", Type: "placed"})
		})
		check.Require(t, err)
	}
	_, _, err := semel.Do(ctx, r, charge.Call(shop, "1", "a"), func(context.Context) (string, error) { return "", errBoom })
	check.Fails(t, err, "an effect that is unknown")
	_, _, err = semel.Do(ctx, r, spent.Call(shop, "1", "a"), func(context.Context) (string, error) { return "", errBoom })
	check.Fails(t, err, "the last attempt")
	_, _, err = semel.Do(ctx, r, waiting.Call(shop, "1", "a"), func(ctx context.Context) (string, error) {
		_, _, err := semel.Do(ctx, r, waiting.Call(shop, "1", "a"), func(context.Context) (string, error) { return "", nil })
		check.ErrorIs(t, err, semel.ErrInProgress, "a second call")
		return "", nil
	})
	check.Require(t, err)
	for _, key := range []string{"1", "2"} {
		_, err = semel.Enqueue(ctx, r, mail.Call(shop, key, "a"), semel.EnqueueOptions{})
		check.Require(t, err)
	}
	return r
}

// TestMetricsCount: what has happened is in the metrics, and what the store holds.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	r := busyRig(t)
	all := r.collected(t)
	for name, want := range map[string]map[string]float64{
		"semel.events": {
			"claimed charge": 1, "claimed spent": 1, "claimed waiting": 1, "in_doubt charge": 1, "exhausted spent": 1,
			"replayed order": 1, "succeeded order": 1, "succeeded waiting": 1, "waited waiting": 1,
		},
		"semel.attempt.duration":         {"charge in_doubt": 1, "spent exhausted": 1, "order succeeded": 1, "waiting succeeded": 1},
		"semel.wait.duration":            {"waiting": 1},
		"semel.watch.up":                 {"": 1},
		"semel.records":                  {"charge indoubt": 1, "mail pending": 2, "order succeeded": 1, "spent indoubt": 1, "waiting succeeded": 1},
		"semel.records.overdue":          {"mail pending": 2},
		"semel.dead_letters":             {"charge indoubt": 0, "spent indoubt": 1},
		"semel.outbox.events":            {"": 1},
		"semel.outbox.parked.aggregates": {"": 0},
		"semel.outbox.parked.events":     {"": 0},
	} {
		if diff := cmp.Diff(want, points(all[name])); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"semel.queue.age", "semel.outbox.age"} {
		for of, age := range points(all[name]) {
			if age <= 0 || age > 60 {
				t.Errorf("%s of %q is %v seconds", name, of, age)
			}
		}
	}
	// Each change of a record outside of a transaction was sent.
	if batches := points(all["semel.batch.size"])[""]; batches < 5 {
		t.Errorf("%v batches, want one for each of the claims, ends and enqueued calls at least", batches)
	}
}

// TestNoQueueWithoutWorkers: one-time tokens and keys that callers may try again are Pending,
// and no worker is late with them.
func TestNoQueueWithoutWorkers(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{Operations: []semel.Declared{mail}})
	r.watch(t, r)
	form := onetime.Define[string]("form", onetime.Options{})
	check.Must(form.Issue(t.Context(), r, shop, time.Hour, "a"))(t)
	_, _, err := semel.Do(t.Context(), r, charge.Call(shop, "1", "a"), func(context.Context) (string, error) {
		return "", semel.NotCommitted(errors.New("try again"))
	})
	check.Fails(t, err, "a refused charge")
	check.Must(semel.Enqueue(t.Context(), r, mail.Call(shop, "1", "a"), semel.EnqueueOptions{}))(t)
	all := r.collected(t)
	if diff := cmp.Diff(map[string]float64{"charge pending": 1, "form pending": 1, "mail pending": 1}, points(all["semel.records"])); diff != "" {
		t.Errorf("semel.records differs (-want +got):\n%s", diff)
	}
	var ages map[string]float64
	realtest.Poll(t, "a late task", func() bool { // the store's clock has milliseconds
		ages = points(r.collected(t)["semel.queue.age"])
		return ages["mail"] > 0
	})
	if ages["form"] != 0 || ages["charge"] != 0 {
		t.Errorf("the ages of the queues are %v, want one of mail only", ages)
	}
}

// TestMetricsHaveNoKeys: no attribute of a metric names a record.
func TestMetricsHaveNoKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{})
	_, _, err := semel.Do(t.Context(), r, charge.Call(semel.ScopeOf("canary"), "canary", "canary"), func(context.Context) (string, error) { return "canary", errors.New("canary") })
	check.Fails(t, err, "Do")
	if text := fmt.Sprintf("%+v", r.collected(t)); strings.Contains(text, "canary") {
		t.Errorf("a metric contains a key, a scope, an input, a result or an error: %s", text)
	}
	for _, s := range r.spans.Ended() {
		if text := fmt.Sprintf("%v", s.Attributes()); strings.Contains(text, "canary") {
			t.Errorf("a span contains a key, a scope, an input or a result: %s", text)
		}
	}
}

// TestTableOfMetrics compares the table of docs/observability.md with what is collected.
func TestTableOfMetrics(t *testing.T) {
	t.Parallel()
	var got []string
	for name, m := range busyRig(t).collected(t) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", m.Data), "metricdata."), "[")
		kind = strings.ToLower(strings.Replace(kind, "Sum", "Counter", 1))
		got = append(got, fmt.Sprintf("%s | %s | %s | %s", name, kind, m.Unit, attributesOf(m)))
	}
	slices.Sort(got)
	kinds := strings.Count(string(check.Must(os.ReadFile(filepath.Join("..", "event", "event.go")))(t)), "Kind = \"")
	for _, page := range []string{"observability.md", "observability.zh-CN.md"} {
		text := check.Must(os.ReadFile(filepath.Join("..", "docs", page)))(t)
		var want []string
		for _, m := range regexp.MustCompile("(?m)^\\| `(semel\\.[a-z_.]+)` \\| (\\w+) \\| `([^`]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
			attributes := strings.ReplaceAll(strings.Trim(m[4], " –"), "`", "")
			want = append(want, fmt.Sprintf("%s | %s | %s | %s", m[1], m[2], m[3], attributes))
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the table of %s differs from the metrics (-page +collected):\n%s", page, diff)
		}
		check.Equal(t, strings.Contains(string(text), fmt.Sprintf("| %d × ", kinds)), true, "%s has the number of kinds of events, %d", page, kinds)
	}
}

// TestWatchOfAClosedDatabase: a store that does not answer is reported as such, and old numbers
// are not repeated.
func TestWatchOfAClosedDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, semel.Options{})
	faulty := check.Must(semel.New(r.store, semel.Options{}))(t)
	stop := check.Must(r.telemetry.Watch(faulty, semelotel.WatchOptions{Every: time.Nanosecond, Timeout: time.Nanosecond}))(t)
	var all metricdata.ResourceMetrics
	check.Require(t, r.reader.Collect(t.Context(), &all))
	got := map[string]map[string]float64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		got[m.Name] = points(m)
	}
	if diff := cmp.Diff(map[string]map[string]float64{"semel.watch.up": {"": 0}}, got); diff != "" {
		t.Errorf("metrics differ (-want +got):\n%s", diff)
	}
	check.NoError(t, stop())
	check.NoError(t, faulty.Close(t.Context()))
}
