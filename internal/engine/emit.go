package engine

import (
	"context"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// emitter sends events to the Observer, if there is one.
type emitter struct{ observer event.Observer }

func (o emitter) observe(ctx context.Context, e event.Event) {
	if o.observer != nil {
		o.observer.Observe(ctx, e)
	}
}

// emit emits an event about a record.
func (o emitter) emit(ctx context.Context, kind event.Kind, r store.Record, err error) {
	if o.observer != nil {
		o.observe(ctx, event.Event{Kind: kind, Operation: r.Operation, ID: r.ID, Attempt: r.Attempt, State: r.State, Err: err})
	}
}
