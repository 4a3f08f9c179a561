package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
)

// role is one actor of a plan: a name and what it does.
type role struct {
	name string
	body func(ctx context.Context, a *actor)
	ask  request
	// shares a process with others that do, if the plan has one.
	shares bool
}

// request is what an actor sends.
type request struct {
	row    int
	fp     string // of the request: one letter
	person bool
	// redrives says that the person redrives dead letters and does not resolve.
	redrives bool
}

const key = "k"

// boot gives the actor its engine.
func (a *actor) boot() {
	if a.proc == nil {
		a.proc = a.w.process(a)
		a.engine = a.proc.engine
	}
}

// stamp returns a result that names the request, the scope and the actor, so
// that a wrong response shows.
func (a *actor) stamp() string {
	who := a.ask.fp + "/" + a.w.stage.scopes[a.ask.row] + "/" + a.name
	if a.callCount > 1 {
		who += "." + strconv.Itoa(a.callCount)
	}
	return who
}

// caller sends the call and receives a response. If the response is not final,
// it may retry.
func caller(ctx context.Context, a *actor) {
	for range max(a.w.stage.plan.Calls, 1) {
		a.pause()
		a.callCount++
		knew := a.history
		a.since, a.late = a.w.ages, a.w.rows[a.ask.row].tokenOver
		v, replayed, err := a.w.stage.mode.shape.run(ctx, a, a.w.stage.call(a.ask))
		a.receiveResponse(toResponse(v, replayed, err))
		a.checkCached(a.history == knew)
		final := (a.response.ok() || a.response.kind == responseFailed) && !a.w.stage.plan.Again
		if final || a.status == statusDead || ctx.Err() != nil {
			return
		}
	}
}

func (a *actor) receiveResponse(t response) {
	if a.status == statusDead {
		return
	}
	w := a.w
	t.ask, t.of = a.callCount, a.ask
	if t.kind == responseReleased {
		for _, g := range w.grants {
			if g.actor == a.index {
				t.attempt, t.epoch = g.attempt, g.epoch
			}
		}
	}
	a.response = t
	if t.kind == responseInProgress {
		w.checkOwnClaim(a)
	}
	checkTokenResponse(w, a, t)
	w.logf("%s receives %v", a.name, t)
	switch {
	case t.ok() && a.unknownCommit:
		w.mark(MarkUnknownOK)
	case a.unknownCommit && t.kind == responseReleased:
		w.mark(MarkUnknownReleased)
	case t.kind == responseMismatch:
		w.mark(MarkMismatch)
	}
	if t.kind == responseReplay {
		w.mark(MarkReplay)
	}
}

// insert is the function of a transaction: it writes the effect, and may then
// fail.
func (a *actor) insert(ctx context.Context, tx *Tx) (string, error) {
	value, g := a.stamp(), a.grantOf(ctx)
	a.w.noteBegun(g)
	tx.Insert(g, value)
	if err := a.enqueueInTx(ctx, tx, g); err != nil {
		return "", err
	}
	if err := a.mayRefuse(g, value); err != nil {
		return "", err
	}
	return value, nil
}

// refusal lets the operation fail, as long as the budget allows refusals.
func (a *actor) refusal() callResult {
	if a.free || a.status == statusDead || a.w.budget.Refusals == 0 {
		return resultOK
	}
	h := [...]callResult{resultOK, resultRefused, resultForbidden}[a.w.choose.choose(3)]
	a.w.budget.spend(h)
	a.note(uint64(h))
	if h != resultOK {
		a.w.logf("the operation %v", h)
	}
	return h
}

// issuer issues the one-time token of the request.
func issuer(ctx context.Context, a *actor) {
	err := adapter.Issue(ctx, a.engine, a.w.stage.call(a.ask), adapter.IssueOptions{TTL: tokenTime})
	a.receiveResponse(toResponse("", false, err))
}

// sweeper frees what dead leaders left, as often as the plan says.
func sweeper(ctx context.Context, a *actor) {
	for range max(a.w.stage.plan.Sweeps, 1) {
		_, _ = admin.Sweep(ctx, a.engine, 10)
	}
}

// roles names the cast of a plan.
func (s *stage) roles() []role {
	var cast []role
	for i := range s.plan.Callers {
		fp := s.plan.Callers[i : i+1]
		ask := request{fp: fp}
		if s.plan.Scopes && !s.plan.EnqueuesTx {
			ask.row = i % len(s.scopes)
		}
		cast = append(cast, role{name: fmt.Sprintf("C%d", i+1), body: caller, ask: ask, shares: true})
	}
	for i := range s.plan.Sweepers {
		cast = append(cast, role{name: fmt.Sprintf("S%d", i+1), body: sweeper})
	}
	for i := range s.plan.Healers {
		cast = append(cast, role{name: fmt.Sprintf("H%d", i+1), body: healer, ask: request{person: true}})
	}
	return append(cast, s.taskRoles()...)
}

// taskRoles lists the roles that work on pending records.
func (s *stage) taskRoles() []role {
	var cast []role
	add := func(n int, name string, body func(context.Context, *actor), ask request) {
		for i := range n {
			cast = append(cast, role{name: name + strconv.Itoa(i+1), body: body, ask: ask})
		}
	}
	add(s.plan.Enqueuers, "E", enqueuer, request{fp: s.plan.requests()[:1]})
	add(s.plan.Workers, "W", worker, request{})
	add(s.plan.Purgers, "P", purger, request{})
	add(s.plan.Redrivers, "R", redriver, request{person: true, redrives: true})
	add(s.plan.Cancellers, "X", canceller, request{person: true})
	add(s.plan.Reschedulers, "D", rescheduler, request{person: true})
	return cast
}
