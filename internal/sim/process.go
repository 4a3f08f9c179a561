package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/store"
)

// process is an engine and the actors that use it: most have one to themselves.
type process struct {
	w      *world
	store  *Store
	engine *semel.Engine[*Tx]
	older  groupcommit.AdvanceFunc // ages the caches of the process
	at     *actor                  // whose coroutine is executing right now
	crew   []*actor

	joined int    // how many questions were asked together with others'
	left   []int  // of the actors, those who gave up, in that order
	busy   uint64 // the records that were found so last
}

// process gives the actor an engine: one of its own, or that of the callers who
// are together.
func (w *world) process(a *actor) *process {
	shares := w.stage.plan.Together && a.shares
	if shares && w.shared != nil {
		w.shared.crew = append(w.shared.crew, a)
		return w.shared
	}
	p := &process{w: w, store: new(Store), crew: []*actor{a}}
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

// digest covers what the actors of a process share: who waits, in which order, and
// who helps them. What is on its way is what those who help ask for.
func (p *process) digest(d digest) digest {
	waiting := slices.Clone(p.crew)
	slices.SortFunc(waiting, func(a, b *actor) int { return a.joined - b.joined })
	for _, a := range waiting {
		if a.status == statusReady && a.op.kind == opWait && !a.op.settled() {
			d = d.add(uint64(a.index))
		}
	}
	var sum uint64
	for _, a := range p.crew {
		if !a.helps() || a.status != statusReady {
			continue
		}
		x := digestSeed.text(a.what).add(uint64(a.history))
		for i := range a.op.batch {
			x = p.w.changeDigest(x, &a.op.batch[i])
		}
		sum += uint64(x)
	}
	for _, i := range p.left {
		d = d.add(uint64(i))
	}
	return d.add(sum).add(p.busy)
}

// crash ends the process where it stands. Its coroutines still run to their end, so
// that the engine's timers are stopped, but as ghosts: none of their calls gets
// anywhere, and nobody hears what they say. Who waits for another one comes after
// that one.
func (p *process) crash() {
	before := p.w.truth()
	for _, a := range p.crew {
		if a.status == statusReady {
			a.status = statusDead
		}
	}
	for again := true; again; {
		again = false
		for i := 0; i < len(p.crew); i++ { // there may be more while they go
			again = p.crew[i].haunt(false) || again
		}
	}
	for _, a := range p.crew {
		a.haunt(true)
	}
	if p.w.truth() != before {
		p.w.fail("ghost", "%s is dead and changes things", p.crew[0].name)
	}
}

// haunt lets a ghost go to its end, and reports whether it did. One that waits for
// an answer stays, unless it has to go.
func (a *actor) haunt(must bool) bool {
	waits := a.op.kind == opWait && !a.op.settled()
	if a.status != statusDead || a.gone || a.co == nil && !a.helps() || waits && !must {
		return false
	}
	a.gone = true
	a.goOn()
	return true
}

// alive tells whether no actor of the process has died, so that none has.
func (p *process) alive() bool {
	return !slices.ContainsFunc(p.crew, func(a *actor) bool { return a.status == statusDead })
}

// goOn runs the actor to its next call, or begins with it.
func (a *actor) goOn() {
	if a.co == nil {
		a.note(uint64(opStart))
		a.start(a.w.stage.coroutine(a.index))
		return
	}
	a.resume()
}

// helps tells whether the engine itself has called for the actor.
func (a *actor) helps() bool { return a.what != "" }

// steps lets the scheduler decide when the engine's own helpers go, and when who
// waits for them goes on.
type steps struct{ p *process }

var _ groupcommit.Scheduler = steps{}

// Go implements [groupcommit.Scheduler].
func (s steps) Go(what string, f func()) {
	p, w := s.p, s.p.w
	n := 1
	for _, a := range p.crew {
		if a.what == what {
			n++
		}
	}
	a := w.enlist(role{name: helperName(what, n), body: func(context.Context, *actor) { f() }, ask: p.at.ask})
	a.what, a.proc, a.engine = what, p, p.engine
	a.op = op{kind: opStart}
	p.crew = append(p.crew, a)
	if p.at.status == statusDead {
		a.status = statusDead
	}
}

const (
	flushes     = "flush"
	recordsLate = "record late"
	givesUp     = "give up"
)

// helperName is what the n-th of those who do what is called.
func helperName(what string, n int) string {
	letter := map[string]string{flushes: "F", recordsLate: "L", givesUp: "G"}[what]
	return letter + strconv.Itoa(n)
}

// errHaunts ends a ghost whose answer will never come.
var errHaunts = errors.New("a ghost waits for its answer")

// Wait implements [groupcommit.Scheduler].
func (s steps) Wait(ctx context.Context, question any, settled func() bool) {
	a := s.p.at
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
		if a.call(o) == howDead && !settled() {
			panic(errHaunts) //nolint:forbidigo // nothing else ends who waits for ever
		}
	}
}

// behind is the actor for whom a asks for a change: its own, unless it helps those
// of its process.
func (w *world) behind(a *actor, c *store.Change) int {
	if !a.helps() {
		return a.index
	}
	if i := w.drawer(c.To.Owner); i >= 0 && w.actors[i].proc == a.proc {
		return i
	}
	return a.index
}
