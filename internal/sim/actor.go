package sim

import (
	"context"
	"runtime/debug"

	"github.com/semelgo/semel"
)

// actor is one process: a coroutine that stops before every call it makes, and
// goes on when the scheduler says so. What it does next depends on nothing but
// the answers it got, so that their digest stands for its state.
type actor struct {
	w     *world
	index int
	name  string
	body  func(ctx context.Context, a *actor)

	co     *coroutine
	engine *semel.Engine[*Tx]

	op      op
	how     how
	status  status
	running bool // its coroutine is executing right now
	free    bool // goes through every call without stopping

	history digest
	owners  int // how many tokens it drew
	told    told
	heard   []told // by a worker, of each of its attempts
	ask     request
	asked   int  // how often
	unsure  bool // one of its commits had no answer
	taken   bool // somebody took its attempt over
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
	co.work = func() {
		defer a.end()
		a.body(context.WithValue(context.Background(), actorKey{}, a), a)
	}
	a.resume()
}

// resume runs the actor from where it stopped to its next call, or to its end.
func (a *actor) resume() {
	a.running = true
	ended := a.co.resume()
	a.running = false
	if ended && a.status == statusReady {
		a.status = statusDone
	}
}

// crash ends the process where it stands. Its coroutine still runs to its end,
// so that the engine's timers are stopped, but as a ghost: none of its calls
// gets anywhere, and nobody hears what it says.
func (a *actor) crash() {
	before := a.w.truth()
	a.status = statusDead
	a.resume()
	if a.w.truth() != before {
		a.w.fail("ghost", "%s is dead and changes things", a.name)
	}
}

// end is the last thing the coroutine does. A panic is a finding.
func (a *actor) end() {
	if p := recover(); p != nil {
		a.w.fail("panic", "%s panics: %v\n%s", a.name, p, debug.Stack())
	}
}

// call waits before a call until the scheduler lets it through, and returns what
// becomes of it.
func (a *actor) call(o op) how {
	switch {
	case a.status == statusDead:
		return howDead
	case a.free:
		a.w.meet(a, o.change.To.Owner)
		return howOK
	}
	a.w.meet(a, o.change.To.Owner)
	a.op = o
	a.co.yield(false)
	if a.status == statusDead {
		return howDead
	}
	a.history = a.history.add(uint64(o.kind)).add(uint64(a.how))
	return a.how
}

// moved tells whether the actor has made its first call.
func (a *actor) moved() bool { return a.history != digestSeed || a.status != statusReady }

// note adds an answer to what the actor knows.
func (a *actor) note(x uint64) { a.history = a.history.add(x) }

func (a *actor) digest(d digest) digest {
	d = d.add(uint64(a.status))
	for _, t := range a.heard {
		d = t.digest(d)
	}
	switch a.status {
	case statusReady:
		return d.add(uint64(a.history))
	case statusDone:
		return a.told.digest(d)
	case statusDead:
	}
	return d
}
