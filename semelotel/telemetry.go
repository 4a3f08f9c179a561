package semelotel

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel/event"
)

// Options configure [New]. The zero value uses the global providers.
type Options struct {
	// MeterProvider and TracerProvider make the metrics and the spans. Nil: those of package
	// otel.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// Propagator writes the context of a trace into records and events, and reads it. What it
	// writes is stored and reaches receivers of events, so choose one that writes no baggage
	// with personal data. Nil: that of W3C Trace Context, without baggage.
	Propagator propagation.TextMapPropagator
	// System is the attribute db.system.name of all metrics and spans, such as postgresql,
	// sqlite, mariadb or redis. It tells apart engines over different stores. Empty: none.
	System string
	// Observer also receives each event. Nil: none.
	Observer event.Observer
}

// Telemetry is the Observer and the Tracer of any number of engines.
type Telemetry struct {
	meter      metric.Meter
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	system     []attribute.KeyValue // none, or one
	next       event.Observer

	events    metric.Int64Counter
	durations metric.Float64Histogram
	waits     metric.Float64Histogram
	batches   metric.Int64Histogram
	sets      sync.Map // of metric.MeasurementOption by setKey: a set is made once
}

var (
	_ event.BatchObserver = (*Telemetry)(nil)
	_ event.Tracer        = (*Telemetry)(nil)
)

// scope is the name of the instrumentation.
const scope = "github.com/semelgo/semel/semelotel"

// The attributes of metrics and spans.
const (
	attrOperation = attribute.Key("semel.operation")
	attrEvent     = attribute.Key("semel.event")
	attrOutcome   = attribute.Key("semel.outcome")
	attrState     = attribute.Key("semel.state")
	attrSystem    = attribute.Key("db.system.name")
	attrAttempt   = attribute.Key("semel.attempt")
	attrRecord    = attribute.Key("semel.record.id")
)

// New returns the telemetry of a program. The error is the meter's, when it refuses an
// instrument.
func New(o Options) (*Telemetry, error) {
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	t := &Telemetry{
		meter: o.MeterProvider.Meter(scope), tracer: o.TracerProvider.Tracer(scope), propagator: o.Propagator, next: o.Observer,
	}
	if o.System != "" {
		t.system = []attribute.KeyValue{attrSystem.String(o.System)}
	}
	return t, t.instruments()
}

// instruments makes the instruments of the engine's events.
func (t *Telemetry) instruments() (err error) {
	t.events, err = t.meter.Int64Counter("semel.events", metric.WithUnit("{event}"),
		metric.WithDescription("Events of the engine: claims, replays, takeovers, alarms and the rest."))
	if err != nil {
		return err
	}
	t.durations, err = t.meter.Float64Histogram("semel.attempt.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the claim to the recorded end of an attempt."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800))
	if err != nil {
		return err
	}
	t.waits, err = t.meter.Float64Histogram("semel.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that a call waited for the leader of its key."),
		metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60))
	if err != nil {
		return err
	}
	t.batches, err = t.meter.Int64Histogram("semel.batch.size", metric.WithUnit("{change}"),
		metric.WithDescription("Changes of records that were sent to the store in one round trip."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
	return err
}

// Observe counts an event, and adds it to the span of ctx.
func (t *Telemetry) Observe(ctx context.Context, e event.Event) {
	t.events.Add(ctx, 1, t.set(attrEvent, e))
	switch {
	case e.Kind == event.Waited:
		t.waits.Record(ctx, e.Elapsed.Seconds(), t.set("", e))
	case isEnd(e.Kind) && e.Elapsed > 0:
		t.durations.Record(ctx, e.Elapsed.Seconds(), t.set(attrOutcome, e))
	}
	t.addToSpan(ctx, e)
	if t.next != nil {
		t.next.Observe(ctx, e)
	}
}

// isEnd reports whether an attempt has ended with an event of this kind.
func isEnd(k event.Kind) bool {
	switch k {
	case event.Succeeded, event.Failed, event.Released, event.Rejected, event.Exhausted, event.InDoubt,
		event.Settled, event.Fenced, event.Conflict, event.Retried:
		return true
	default:
		return false
	}
}

// ObserveBatch records the size of a batch.
func (t *Telemetry) ObserveBatch(ctx context.Context, changes int) {
	t.batches.Record(ctx, int64(changes), t.set("", event.Event{}))
	if next, ok := t.next.(event.BatchObserver); ok {
		next.ObserveBatch(ctx, changes)
	}
}

// setKey identifies a set of attributes.
type setKey struct {
	operation string
	name      attribute.Key
	kind      event.Kind
}

// set returns the attributes of a measurement: the operation, and the kind under name.
func (t *Telemetry) set(name attribute.Key, e event.Event) metric.MeasurementOption {
	key := setKey{operation: e.Operation, name: name}
	if name != "" {
		key.kind = e.Kind
	}
	if known, ok := t.sets.Load(key); ok {
		return known.(metric.MeasurementOption)
	}
	attrs := t.system
	if e.Operation != "" {
		attrs = append(slices.Clip(attrs), attrOperation.String(e.Operation))
	}
	if name != "" {
		attrs = append(slices.Clip(attrs), name.String(string(e.Kind)))
	}
	made := metric.WithAttributeSet(attribute.NewSet(attrs...))
	t.sets.Store(key, made)
	return made
}
