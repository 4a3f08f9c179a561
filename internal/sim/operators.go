package sim

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// healer is an operator with access to the domain, who resolves a doubt after
// finding the effect.
func healer(ctx context.Context, a *actor) {
	scope := semel.ScopeOf(a.w.stage.scopes[a.ask.row])
	rec, ok, err := admin.Get(ctx, a.engine, a.w.stage.op.Name(), scope, key)
	if err != nil || !ok || rec.State != store.InDoubt {
		return
	}
	if result, found, err := look(ctx, scope, key); err == nil && found {
		_, _ = admin.Resolve(ctx, a.engine, admin.Resolution{ID: rec.ID, To: store.Succeeded, Result: result, Actor: a.name, Reason: "seen"})
	}
}

// finalResolver is an operator after the end of all other actors: then an
// absent effect will never happen.
func finalResolver(ctx context.Context, a *actor) {
	w := a.w
	resolution := admin.Resolution{ID: w.rows[a.ask.row].id, To: store.Pending, Actor: a.name, Reason: "nothing was found"}
	if e := w.effectOf(a.ask.row); e != nil {
		resolution.To, resolution.Result, resolution.Reason = store.Succeeded, e.value, "it is there"
	}
	if _, err := admin.Resolve(ctx, a.engine, resolution); err != nil {
		w.fail("I12", "a person cannot resolve the doubt: %v", err)
	}
}

// redriver is an operator who redrives a failed record.
func redriver(ctx context.Context, a *actor) {
	_, _ = admin.Redrive(ctx, a.engine, admin.RedriveRequest{ID: a.w.rows[a.ask.row].id, Actor: a.name, Reason: "it works again"})
}

// canceller is an operator who cancels a record.
func canceller(ctx context.Context, a *actor) {
	_, _ = admin.Cancel(ctx, a.engine, a.w.rows[a.ask.row].id, "not wanted")
}

// rescheduler is an operator who makes a record due.
func rescheduler(ctx context.Context, a *actor) {
	_, _ = admin.Reschedule(ctx, a.engine, a.w.rows[a.ask.row].id, 0)
}

// cancelID returns the ID of the record that requests the cancellation of
// another record's attempt.
func cancelID(id store.ID) store.ID {
	return store.NewID("semel.cancel", semel.Shared().Bytes(), id.String())
}
