package sim

import (
	"context"
	"runtime/debug"

	"github.com/semelgo/semel"
)

// actor is a coroutine that stops before every call it makes, and goes on when the
// scheduler says so: most are a process each. What it does next depends on nothing but
// the answers it got, so that their digest stands for its state.
type actor struct {
	w     *world
	index int
	name  string
	body  func(ctx context.Context, a *actor)

	co     *coroutine
	proc   *process
	engine *semel.Engine[*Tx]
	shares bool   // its process with others who do, if the plan says so
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
	since         int  // the ages that had passed when it asked
	unknownCommit bool // one of its commits had no answer
	taken         bool // somebody took its attempt over
}

type status uint8

const (
	statusReady status = iota // waits before a call
	statusDone
	statusDead
)

type actorKey struct{}

// actorOf is the actor whose call ctx comes from.
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

// end is the last thing the coroutine does. A panic is a finding.
func (a *actor) end() {
	if p := recover(); p != nil && p != any(errGhost) {
		a.w.fail("panic", "%s panics: %v\n%s", a.name, p, debug.Stack())
	}
}

// call waits before a call until the scheduler lets it through, and returns what
// becomes of it.
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

// moved tells whether the actor has made its first call.
func (a *actor) moved() bool { return a.history != digestSeed || a.status != statusReady }

// note adds an answer to what the actor knows.
func (a *actor) note(x uint64) { a.history = a.history.add(x) }

func (a *actor) digest(d digest) digest {
	d = d.add(uint64(a.status))
	for _, t := range a.responses {
		d = t.digest(d)
	}
	switch a.status {
	case statusReady:
		return d.add(uint64(a.history))
	case statusDone:
		return a.response.digest(d)
	case statusDead:
	}
	return d
}
