package semeltest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// stormChecks let 50 callers in 5 processes ask for one key while every first
// answer of the store is lost.
func stormChecks[Tx any]() []check[Tx] {
	var checks []check[Tx]
	for _, w := range ways[Tx]() {
		if w.end == succeeds || w.end == fails {
			checks = append(checks, check[Tx]{w.name, func(r *txRig[Tx]) { r.storm(w) }})
		}
	}
	return inTx(checks...)
}

// firstLost loses the first answer to each write, and every second answer of
// the calls that have no identity.
type firstLost struct {
	mu    sync.Mutex
	asked map[store.Token]bool // guarded by mu
	calls map[string]int       // by method; guarded by mu
	lost  int                  // guarded by mu
}

func (f *firstLost) decide(c Call) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lose bool
	if len(c.Changes) > 0 {
		token := c.Changes[0].To.Token
		lose = !f.asked[token]
		f.asked[token] = true
	} else {
		f.calls[c.Method]++
		lose = f.calls[c.Method]%2 == 1
	}
	if !lose {
		return None
	}
	f.lost++
	return Lose
}

func (r *txRig[Tx]) storm(w way[Tx]) {
	const processes = 5
	k := r.newWork(w, "storm")
	first := &firstLost{asked: make(map[store.Token]bool), calls: make(map[string]int)}
	faulty := NewFaulty(r.tx, first.decide)
	var engines [processes]*semel.Engine[Tx]
	for i := range engines {
		e, err := semel.New(r.failing(faulty), semel.Options{Survive: store.NoFailure, Lease: r.lease()})
		if err != nil {
			r.Fatalf("New: %v", err)
		}
		engines[i] = e
	}
	told := make([][]answer, askers)
	together(askers, func(i int) { told[i] = r.askUntilFinal(k, engines[i%processes]) })
	for _, e := range engines {
		if err := e.Close(r.ctx); err != nil {
			r.Errorf("Close: %v", err)
		}
	}
	r.judge(k, history{answers: slices.Concat(told...)}, "every first answer lost")
	if first.lost == 0 {
		r.Error("no answer was lost")
	}
}

// askUntilFinal asks as callers should: again, ever less often, until the answer
// is final.
func (r *txRig[Tx]) askUntilFinal(k *work[Tx], e *semel.Engine[Tx]) []answer {
	var all []answer
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var a answer
		a.value, _, a.err = k.way.run(k, e)
		all = append(all, a)
		if a.final() {
			return all
		}
		if !errors.Is(a.err, semel.ErrInProgress) && !errors.Is(a.err, semel.ErrUnavailable) && semel.VerdictOf(a.err) == store.Unknown {
			r.Logf("a caller is told %v", a.err)
		}
		if pauseFor(r.ctx, wait) != nil {
			r.Errorf("a caller is never told: %v", a.err)
			return all
		}
	}
}
