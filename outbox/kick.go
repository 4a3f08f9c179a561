package outbox

import (
	"sync"

	"github.com/semelgo/semel"
)

// Kick wakes the relays of e in this process: call it after the commit of a transaction
// that has appended events. It never blocks, and does no harm if there is nothing to
// publish. Transactions of semel.DoTx and semel.InTx need no Kick.
func Kick(e semel.Runner) { relays.kick(e, 0) }

// relays are the running relays of this process, by engine.
var relays = registry{kicks: make(map[semel.Runner]map[*kicks]struct{})} //nolint:gochecknoglobals // AppendTx must find them

type registry struct {
	mu    sync.Mutex
	kicks map[semel.Runner]map[*kicks]struct{}
}

func (g *registry) add(e semel.Runner, k *kicks) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kicks[e] == nil {
		g.kicks[e] = make(map[*kicks]struct{})
	}
	g.kicks[e][k] = struct{}{}
}

func (g *registry) remove(e semel.Runner, k *kicks) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.kicks[e], k); len(g.kicks[e]) == 0 {
		delete(g.kicks, e)
	}
}

// kick wakes the relays of e. No lanes means that they are not known.
func (g *registry) kick(e semel.Runner, lanes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.kicks[e] {
		k.add(lanes)
	}
}

// kicks gathers wake-ups until the relay takes them.
type kicks struct {
	wakeups chan struct{} // holds a value when there is something to take

	mu    sync.Mutex // guards the fields below
	lanes uint64     // a bit for each lane
	all   bool       // the lanes are not known
}

func (k *kicks) add(lanes uint64) {
	k.mu.Lock()
	k.lanes |= lanes
	k.all = k.all || lanes == 0
	k.mu.Unlock()
	signal(k.wakeups)
}

func (k *kicks) take() (lanes uint64, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lanes, all = k.lanes, k.all
	k.lanes, k.all = 0, false
	return lanes, all
}

// signal sends to a channel with a buffer of one, unless the buffer is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
