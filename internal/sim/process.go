package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/store"
)

// process is an engine and its actors. Most processes have one actor.
type process struct {
	w       *world
	store   *Store
	engine  *semel.Engine[*Tx]
	older   func(by time.Duration) // ages the caches of the process
	running *actor                 // the actor that executes right now
	members []*actor

	joined   int    // how many calls were joined with those of other actors
	canceled []int  // canceled actors, in that order
	busy     uint64 // the records that were found so last
}

// process gives the actor an engine: one of its own, or that of the callers who
// are together.
func (w *world) process(a *actor) *process {
	shares := w.stage.plan.Shared && a.shares
	if shares && w.shared != nil {
		w.shared.members = append(w.shared.members, a)
		return w.shared
	}
	p := &process{w: w, store: new(Store), members: []*actor{a}}
	p.store.owner.Store(p)
	w.processes = append(w.processes, p)
	o := semel.Options{
		Lease: lease, Heartbeat: lease / 2, Operations: []semel.Declared{w.stage.op},
		MaxUnrecorded: -1, // what is recorded late is recorded by a goroutine, which no schedule knows
	}
	if shares {
		w.shared, o.MaxUnrecorded = p, 0
	}
	if w.stage.plan.Cached {
		o.CacheBytes, o.CacheAge = 1<<20, lease
	}
	var err error
	if p.engine, err = semel.New(w.stage.offers(p), o); err != nil {
		w.fail("engine", "%v", err)
	}
	return p
}

// digest covers the shared state of a process: the waiting actors in their
// order, and the helpers with the changes that they send.
func (p *process) digest(d digest) digest {
	waiting := slices.Clone(p.members)
	slices.SortFunc(waiting, func(a, b *actor) int { return a.joined - b.joined })
	for _, a := range waiting {
		if a.status == statusReady && a.op.kind == opWait && !a.op.settled() {
			d = d.add(uint64(a.index))
		}
	}
	var sum uint64
	for _, a := range p.members {
		if !a.isHelper() || a.status != statusReady {
			continue
		}
		x := digestSeed.text(a.task).add(uint64(a.history))
		for i := range a.op.batch {
			x = p.w.changeDigest(x, &a.op.batch[i])
		}
		sum += uint64(x)
	}
	for _, i := range p.canceled {
		d = d.add(uint64(i))
	}
	return d.add(sum).add(p.busy)
}

// crash ends the process. Its coroutines still run to their ends as ghosts, so
// that the engine's timers stop: none of their calls has an effect, and their
// responses are ignored. A ghost that waits for another one ends after it.
func (p *process) crash() {
	before := p.w.truth()
	for _, a := range p.members {
		if a.status == statusReady {
			a.status = statusDead
		}
	}
	for again := true; again; {
		again = false
		for i := 0; i < len(p.members); i++ { // there may be more while they go
			again = p.members[i].finishGhost(false) || again
		}
	}
	for _, a := range p.members {
		a.finishGhost(true)
	}
	if p.w.truth() != before {
		p.w.fail("ghost", "%s is dead and changes things", p.members[0].name)
	}
}

// finishGhost runs a ghost to its end and reports whether it did. A ghost that
// waits for a result stays, unless must is set.
func (a *actor) finishGhost(require bool) bool {
	waits := a.op.kind == opWait && !a.op.settled()
	if a.status != statusDead || a.finished || a.co == nil && !a.isHelper() || waits && !require {
		return false
	}
	a.finished = true
	a.runNext()
	return true
}

// alive reports whether the process has not crashed.
func (p *process) alive() bool {
	return !slices.ContainsFunc(p.members, func(a *actor) bool { return a.status == statusDead })
}

// runNext runs the actor to its next call, or starts it.
func (a *actor) runNext() {
	if a.co == nil {
		a.note(uint64(opStart))
		a.start(a.w.stage.coroutine(a.index))
		return
	}
	a.resume()
}

// isHelper reports whether the actor is a goroutine of the engine.
func (a *actor) isHelper() bool { return a.task != "" }

// scheduler decides when the goroutines of the engine run, and when waiting
// callers continue.
type scheduler struct{ p *process }

var _ groupcommit.Scheduler = scheduler{}

// Go implements [groupcommit.Scheduler].
func (s scheduler) Go(task string, f func()) {
	p, w := s.p, s.p.w
	n := 1
	for _, a := range p.members {
		if a.task == task {
			n++
		}
	}
	a := w.enlist(role{name: helperName(task, n), body: func(context.Context, *actor) { f() }, ask: p.running.ask})
	a.task, a.proc, a.engine = task, p, p.engine
	a.op = op{kind: opStart}
	p.members = append(p.members, a)
	if p.running.status == statusDead {
		a.status = statusDead
	}
}

const (
	taskFlush      = "flush"
	taskRecordLate = "record late"
	taskGiveUp     = "give up"
)

// helperName returns the name of the n-th goroutine with a task.
func helperName(task string, n int) string {
	letter := map[string]string{taskFlush: "F", taskRecordLate: "L", taskGiveUp: "G"}[task]
	return letter + strconv.Itoa(n)
}

// errGhost ends a ghost that would wait forever.
var errGhost = errors.New("a ghost waits for its answer")

// Wait implements [groupcommit.Scheduler].
func (s scheduler) Wait(ctx context.Context, question any, settled func() bool) {
	a := s.p.running
	s.p.joined++
	a.joined = s.p.joined
	o := op{kind: opWait, settled: settled}
	switch q := question.(type) {
	case store.Change:
		o.change, o.row = q, a.w.indexOf(q.To.ID)
	case store.ID:
		o.row = a.w.indexOf(q)
	}
	for !settled() && ctx.Err() == nil {
		if a.call(o) == resultDead && !settled() {
			panic(errGhost) //nolint:forbidigo // nothing else ends this wait
		}
	}
}

// requester returns the actor that requests a change: a itself, unless a is a
// helper that sends the changes of other actors.
func (w *world) requester(a *actor, c *store.Change) int {
	if !a.isHelper() {
		return a.index
	}
	if i := w.ownerActor(c.To.Owner); i >= 0 && w.actors[i].proc == a.proc {
		return i
	}
	return a.index
}
