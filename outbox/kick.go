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
var relays = registry{wakeups: make(map[semel.Runner]map[*wakeups]struct{})} //nolint:gochecknoglobals // AppendTx must find them

type registry struct {
	mu      sync.Mutex
	wakeups map[semel.Runner]map[*wakeups]struct{}
}

func (g *registry) add(e semel.Runner, w *wakeups) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wakeups[e] == nil {
		g.wakeups[e] = make(map[*wakeups]struct{})
	}
	g.wakeups[e][w] = struct{}{}
}

func (g *registry) remove(e semel.Runner, w *wakeups) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.wakeups[e], w); len(g.wakeups[e]) == 0 {
		delete(g.wakeups, e)
	}
}

// kick wakes the relays of e. No lanes means that they are not known.
func (g *registry) kick(e semel.Runner, lanes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := range g.wakeups[e] {
		w.add(lanes)
	}
}

// wakeups gathers wake-ups until the relay takes them.
type wakeups struct {
	ready chan struct{} // holds a value when there is something to take

	mu    sync.Mutex // guards the fields below
	lanes uint64     // a bit for each lane
	all   bool       // the lanes are not known
}

func (w *wakeups) add(lanes uint64) {
	w.mu.Lock()
	w.lanes |= lanes
	w.all = w.all || lanes == 0
	w.mu.Unlock()
	signal(w.ready)
}

func (w *wakeups) take() (lanes uint64, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lanes, all = w.lanes, w.all
	w.lanes, w.all = 0, false
	return lanes, all
}

// signal sends to a channel with a buffer of one, unless the buffer is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
