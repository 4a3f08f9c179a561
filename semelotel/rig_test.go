package semelotel_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

var shop = semel.ScopeOf("shop")

// rig is an engine over SQLite with an SDK that keeps everything in memory.
type rig struct {
	*semel.Engine[*sql.Tx]

	telemetry *semelotel.Telemetry
	spans     *tracetest.SpanRecorder
	reader    *sdkmetric.ManualReader
	tracers   *sdktrace.TracerProvider
	store     *sqlite.Store
}

func newRig(t *testing.T, o semel.Options) *rig {
	t.Helper()
	t.Attr("engine", "sqlite")
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "shop.db")))(t)
	t.Cleanup(func() { check.NoError(t, db.Close()) })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	r := &rig{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(), store: sqlite.New(db, sqlite.Options{})}
	r.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.telemetry = check.Must(semelotel.New(semelotel.Options{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)), TracerProvider: r.tracers, System: "sqlite",
	}))(t)
	o.Observer, o.Tracer, o.Lease = r.telemetry, r.telemetry, 10*time.Second
	r.Engine = check.Must(semel.New(r.store, o))(t)
	t.Cleanup(func() { check.NoError(t, r.Close(context.Background())) })
	return r
}

// ended returns the only ended span with that name.
func (r *rig) ended(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	found := r.named(name)
	if len(found) != 1 {
		t.Fatalf("%d spans are named %q, want 1", len(found), name)
	}
	return found[0]
}

// named returns the ended spans with that name, in the order of their ends.
func (r *rig) named(name string) (found []sdktrace.ReadOnlySpan) {
	for _, s := range r.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// attributeOf returns the text of an attribute of a span.
func attributeOf(s sdktrace.ReadOnlySpan, name string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == name {
			return kv.Value.Emit()
		}
	}
	return ""
}

// mailed runs a worker until it has run the only task, and returns its span.
func (r *rig) mailed(t *testing.T) sdktrace.ReadOnlySpan {
	t.Helper()
	ran := make(chan struct{}, 1)
	worker := check.Must(task.New(r, task.Options{}))(t)
	check.Require(t, task.Handle(worker, mail, func(context.Context, string) (string, error) {
		ran <- struct{}{}
		return "", nil
	}, task.HandlerOptions{}))
	run(t, worker.Run, func() { <-ran })
	return r.ended(t, "run mail")
}

// link is the span that another one refers to, and the one that it should be.
type link struct{ got, want trace.SpanContext }

// wantLinks checks links, all of which are in the trace of root.
func wantLinks(t *testing.T, root trace.SpanContext, links map[string]link) {
	t.Helper()
	for what, l := range links {
		if l.got.SpanID() != l.want.SpanID() || l.got.TraceID() != root.TraceID() {
			t.Errorf("%s is %v, want %v", what, l.got, l.want)
		}
	}
}

// watch watches an engine until the test ends, and asks its store for each collection.
func (r *rig) watch(t *testing.T, e semel.Runner) {
	t.Helper()
	stop := check.Must(r.telemetry.Watch(e, semelotel.WatchOptions{Every: time.Nanosecond}))(t)
	t.Cleanup(func() { check.NoError(t, stop()) })
}

// startBare starts an engine without telemetry over a store that cannot count, which r watches.
func (r *rig) startBare(t *testing.T, s store.Store) semel.Runner {
	t.Helper()
	e := check.Must(semel.NewRunner(s, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{mail}}))(t)
	t.Cleanup(func() { check.NoError(t, e.Close(context.Background())) })
	r.watch(t, e)
	return e
}
