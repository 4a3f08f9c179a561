package sim

import (
	"context"

	"github.com/semelgo/semel/store"
)

// settle runs after all actors have ended and faults have stopped. Leases
// expire, and a retry must settle each key as the policy says, with or without
// a sweep before it.
func (w *world) settle() {
	w.checkAbandonedClaims()
	w.settling = true
	for i := range w.stage.scopes {
		if w.stage.plan.EnqueuesTx && i == joined && w.rows[i].rec.State == store.Absent {
			continue // what it was enqueued with has failed
		}
		if w.stage.mode.retry && w.rows[i].rec.State != store.Absent && w.choose.choose(2) == 1 {
			w.settleTask(i)
		} else {
			w.settleRow(i)
		}
	}
}

// settleTask settles a key that the system owns without any caller: a sweeper
// and a worker are enough, and where the policy says so an operator.
func (w *world) settleTask(i int) {
	r := &w.rows[i]
	for range 2 * (w.stage.plan.MaxErrors + w.stage.plan.MaxCrashes) {
		switch {
		case r.rec.State.Final():
			w.mark(MarkSettledByWorker)
			return
		case r.rec.State == store.InDoubt && !w.stage.mode.doubts:
			w.fail("I12", "%s is in doubt, which its policy rules out", w.token(r.rec.Token))
			return
		case r.rec.State == store.InDoubt:
			w.alone(role{name: "person", body: finalResolver, ask: request{row: i, person: true}})
		}
		r.due = r.due || timed(r.rec.State)
		w.alone(role{name: "sweeper", body: sweeper, ask: request{row: i}})
		w.alone(role{name: "worker", body: worker, ask: request{row: i}})
	}
	w.fail("I12", "%s is not settled by sweepers and workers", w.token(r.rec.Token))
}

func (w *world) settleRow(i int) {
	r := &w.rows[i]
	r.due = r.due || timed(r.rec.State)
	if w.choose.choose(2) == 1 {
		w.alone(role{name: "sweeper", body: sweeper, ask: request{row: i}})
	}
	fp := r.request
	if r.rec.State == store.Absent {
		fp = w.stage.plan.requests()[:1]
	}
	asked := request{row: i, fp: fp}
	by := MarkSettledByRetry
	for range 3 {
		t := w.alone(role{name: "retry", body: caller, ask: asked}).response
		switch {
		case t.ok(), t.kind == responseFailed, isTokenOver(r, t):
			w.mark(by)
			return
		case r.rec.State == store.InDoubt && w.stage.mode.doubts:
			by = MarkSettledByOperator
			w.alone(role{name: "person", body: finalResolver, ask: request{row: i, person: true}})
		default:
			w.fail("I12", "a retry after the end of the run receives %v", t)
			return
		}
	}
	w.fail("I12", "a person has decided, and a retry is in doubt again")
}

// alone runs an actor to its end, without other actors and without faults.
func (w *world) alone(c role) *actor {
	a := w.enlist(c)
	a.free = true
	a.boot()
	a.proc.running = a
	a.body(context.WithValue(context.Background(), actorKey{}, a), a)
	a.status, a.proc.running = statusDone, nil
	return a
}
