package semelotel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/outbox"
)

// Start starts the span of a run of an operation's function. The span of a task is a child of
// the span that enqueued it.
func (t *Telemetry) Start(ctx context.Context, e event.Event) (context.Context, func(event.Event)) {
	if e.Operation == outbox.Operation { // a lane is held for hours
		return ctx, func(event.Event) {}
	}
	attrs := append(slices.Clip(t.system),
		attrOperation.String(e.Operation), attrRecord.String(e.ID.String()), attrAttempt.Int64(int64(e.Attempt)))
	ctx, span := t.tracer.Start(ctx, "run "+e.Operation, trace.WithAttributes(attrs...))
	return ctx, func(e event.Event) {
		span.SetAttributes(attrOutcome.String(string(e.Kind)))
		switch e.Kind {
		case event.Succeeded, event.Settled, event.Healed, event.Retried, event.Replayed:
		default:
			if e.Err != nil {
				span.SetStatus(codes.Error, e.Err.Error())
			}
		}
		span.End()
	}
}

// addToSpan adds an event to the span of ctx. The beginning and the end of an attempt are its
// span.
func (t *Telemetry) addToSpan(ctx context.Context, e event.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() || e.Kind == event.Claimed || isEnd(e.Kind) && !e.Alarm() {
		return
	}
	attrs := []attribute.KeyValue{attrOperation.String(e.Operation), attrRecord.String(e.ID.String()), attrState.String(stateName(e.State))}
	if e.Err != nil {
		attrs = append(attrs, attribute.String("exception.message", e.Err.Error()))
	}
	span.AddEvent("semel."+string(e.Kind), trace.WithAttributes(attrs...))
}

// Inject returns the fields of the trace of ctx.
func (t *Telemetry) Inject(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	return carrier
}

// Extract returns ctx with the span of an earlier Inject as its parent.
func (t *Telemetry) Extract(ctx context.Context, carrier map[string]string) context.Context {
	return t.propagator.Extract(ctx, propagation.MapCarrier(carrier))
}
