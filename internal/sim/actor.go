package sim

import (
	"context"
	"runtime/debug"

	"github.com/semelgo/semel"
)

// actor is a coroutine that stops before every call and continues when the
// scheduler says so. Most actors are a process of their own. The next step of
// an actor depends only on the results that it has received, so their digest
// represents its state.
type actor struct {
	w     *world
	index int
	name  string
	body  func(ctx context.Context, a *actor)

	co     *coroutine
	proc   *process
	engine *semel.Engine[*Tx]
	shares bool   // in plans with Shared, it shares one process with the others
	task   string // it does for the others of its process, if it helps
	cancel context.CancelFunc
	joined int // when it began to wait for others

	op         op
	callResult callResult
	status     status
	finished   bool // ran to its end as a ghost
	free       bool // goes through every call without stopping

	history       digest
	owners        int        // how many tokens it drew
	response      response   // the last one
	responses     []response // by a worker, of each of its attempts
	ask           request
	callCount     int  // number of calls so far
	since         int  // the ages that had passed when it sent the request
	late          bool // the time of its token was over when it sent the request
	unknownCommit bool // one of its commits had no answer
	taken         bool // another actor took over its attempt
}

type status uint8

const (
	statusReady status = iota // waits before a call
	statusDone
	statusDead
)

type actorKey struct{}

// actorOf returns the actor of a call's context.
func actorOf(ctx context.Context) *actor {
	a, _ := ctx.Value(actorKey{}).(*actor)
	return a
}

// start runs the actor to its first call.
func (a *actor) start(co *coroutine) {
	a.co = co
	a.boot()
	ctx := context.WithValue(context.Background(), actorKey{}, a)
	if a.proc == a.w.shared {
		ctx, a.cancel = context.WithCancel(ctx)
	}
	co.work = func() {
		defer a.end()
		a.body(ctx, a)
	}
	a.resume()
}

// resume runs the actor from where it stopped to its next call, or to its end.
func (a *actor) resume() {
	a.proc.running = a
	ended := a.co.resume()
	a.proc.running = nil
	if ended && a.status == statusReady {
		a.status = statusDone
	}
}

// end runs at the end of the coroutine. A panic is a violation.
func (a *actor) end() {
	if p := recover(); p != nil && p != any(errGhost) {
		a.w.fail("panic", "%s panics: %v\n%s", a.name, p, debug.Stack())
	}
}

// call waits before a call until the scheduler continues the actor. It returns
// the result of the call.
func (a *actor) call(o op) callResult {
	switch {
	case a.status == statusDead:
		return resultDead
	case a.free:
		a.w.nameOwner(a, o.change.To.Owner)
		return resultOK
	}
	a.w.nameOwner(a, o.change.To.Owner)
	a.op = o
	a.co.yield(false)
	if a.status == statusDead {
		return resultDead
	}
	a.note(uint64(o.kind)<<8 | uint64(a.callResult))
	return a.callResult
}

// moved reports whether the actor has made its first call.
func (a *actor) moved() bool { return a.history != digestSeed || a.status != statusReady }

// note adds a received result to the actor's history.
func (a *actor) note(x uint64) { a.history = a.history.add(x) }

func (a *actor) digest(d digest) digest {
	d = d.add(uint64(a.status))
	for _, t := range a.responses {
		d = t.digest(d)
	}
	switch a.status {
	case statusReady:
		return d.flag(a.late).add(uint64(a.history))
	case statusDone:
		return a.response.digest(d)
	case statusDead:
	}
	return d
}
