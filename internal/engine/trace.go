package engine

import (
	"context"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// InjectTrace returns what the tracer needs to continue the trace of ctx elsewhere, or nil.
func InjectTrace(ctx context.Context, c *Core) map[string]string {
	if c.options.Tracer == nil {
		return nil
	}
	carrier := c.options.Tracer.Inject(ctx)
	size := 0
	for name, value := range carrier {
		size += len(name) + len(value)
	}
	if size == 0 || size > event.MaxTrace {
		return nil
	}
	return carrier
}

// ExtractTrace returns ctx in the trace of an earlier InjectTrace.
func ExtractTrace(ctx context.Context, c *Core, carrier map[string]string) context.Context {
	if c.options.Tracer == nil || len(carrier) == 0 {
		return ctx
	}
	return c.options.Tracer.Extract(ctx, carrier)
}

// traceOf returns ctx in the trace that is stored in the record of an enqueued call.
func traceOf(ctx context.Context, c *Core, r *store.Record) context.Context {
	if c.options.Tracer == nil {
		return ctx
	}
	p, _ := codec.ProgressOf(*r)
	return ExtractTrace(ctx, c, p.Trace)
}

// trace tells the tracer that the function of the attempt is about to run, and returns the
// function's context.
func (a *Attempt) trace(ctx context.Context) context.Context {
	if a.c.options.Tracer == nil || a.endTrace != nil {
		return ctx
	}
	ctx, a.endTrace = a.c.options.Tracer.Start(ctx, event.Event{
		Kind: event.Claimed, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: store.InProgress,
	})
	return ctx
}

// traced tells the tracer how the attempt has ended: current is the record now, and err
// what the caller receives.
func traced(a *Attempt, kind event.Kind, current *store.Record, err error) {
	end := a.endTrace
	if end == nil {
		return
	}
	a.endTrace = nil
	end(event.Event{
		Kind: kind, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: current.State,
		Err: err, Elapsed: a.c.clock.Since(a.begun),
	})
}

// tracedEnd returns the kind of the end of an attempt that left the record current.
func tracedEnd(a *Attempt, current *store.Record, err error) event.Kind {
	told, _ := errtype.Find[*callerr.AttemptError](err)
	switch {
	case current.Owner == a.token.Owner && current.State == store.InProgress:
		return event.Late
	case current.Owner == a.token.Owner:
		return endKind(protocol.StepInline, current)
	case current.State == store.InDoubt:
		return event.InDoubt
	case told != nil && told.Verdict == store.Unknown:
		return event.Late
	case told != nil:
		return event.Released
	default:
		return event.Fenced
	}
}
