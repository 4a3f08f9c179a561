package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// stormChecks let 50 callers in 5 processes call one key while every first reply of
// the store is lost.
func stormChecks(all []mode) []engineCheck {
	var checks []engineCheck
	for _, w := range all {
		if w.handlerEnd == succeeds || w.handlerEnd == fails {
			checks = append(checks, engineCheck{w.name, func(r *engineHarness) { r.storm(w) }})
		}
	}
	return checks
}

// firstReplyDropper loses the first reply to each write, and every second reply of
// calls without an identity.
type firstReplyDropper struct {
	mu    sync.Mutex
	sent  map[store.Token]bool // guarded by mu
	calls map[string]int       // by method; guarded by mu
	lost  int                  // guarded by mu
}

func (f *firstReplyDropper) decide(c Call) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lose bool
	if len(c.Changes) > 0 {
		token := c.Changes[0].To.Token
		lose = !f.sent[token]
		f.sent[token] = true
	} else {
		f.calls[c.Method]++
		lose = f.calls[c.Method]%2 == 1
	}
	if !lose {
		return Fault{}
	}
	f.lost++
	return Lose()
}

func (r *engineHarness) storm(w mode) {
	const processes = 5
	k := r.newModeRun(w, "storm")
	first := &firstReplyDropper{sent: make(map[store.Token]bool), calls: make(map[string]int)}
	faulty := r.connect(first.decide)
	var engines [processes]semel.Runner
	for i := range engines {
		e, err := faulty.newEngine(semel.Options{Survive: store.NoFailure, Lease: r.lease()})
		check.Require(r, err, "New")
		engines[i] = e
	}
	told := make([][]answer, callers)
	r.concurrently(callers, func(i int) { told[i] = r.callUntilFinal(k, engines[i%processes]) })
	for _, e := range engines {
		check.NoError(r, e.Close(r.ctx), "Close")
	}
	r.checkHistory(k, history{answers: slices.Concat(told...)}, "every first answer lost")
	if first.lost == 0 {
		r.Error("no answer was lost")
	}
}

// callUntilFinal retries as callers should, with backoff, until the answer is
// final.
func (r *engineHarness) callUntilFinal(k *modeRun, e semel.Runner) []answer {
	var all []answer
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var a answer
		a.value, _, a.err = k.mode.run(k, e)
		all = append(all, a)
		if a.final() {
			return all
		}
		if !errors.Is(a.err, semel.ErrInProgress) && !errors.Is(a.err, semel.ErrUnavailable) && semel.VerdictOf(a.err) == store.Unknown {
			r.Logf("a caller gets %v", a.err)
		}
		if pauseFor(r.ctx, wait) != nil {
			r.Errorf("a caller never gets a final answer: %v", a.err)
			return all
		}
	}
}
