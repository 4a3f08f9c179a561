package semeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/semelgo/semel/store"
)

const (
	// SeedEnv names the environment variable that repeats random histories: the
	// seed that their failure has printed.
	SeedEnv = "SEMELTEST_SEED"

	// HistoriesEnv names the environment variable that says how many random
	// histories of each kind are tried: 12 without it.
	HistoriesEnv = "SEMELTEST_HISTORIES"
)

// modelChecks ask the store and the model the same, at random, and require the
// same answers after every step.
func modelChecks[Tx any]() []check[Tx] {
	return append([]check[Tx]{{"RandomHistories", func(r *txRig[Tx]) {
		r.randomly("model", 3, func(h *randomHistory[Tx]) { h.ask(h.batch()) })
	}}}, inTx(check[Tx]{"RandomTransactions", func(r *txRig[Tx]) {
		r.randomly("modeltx", 6, (*randomHistory[Tx]).transact)
	}})...)
}

// randomly lets histories of some steps pass, each about records of its own. It
// requires that there were enough different answers, or it would show nothing.
func (r *txRig[Tx]) randomly(name string, enough int, step func(h *randomHistory[Tx])) {
	const steps = 25
	seed := fromEnv(r.T, SeedEnv, rand.Uint64)
	histories := fromEnv(r.T, HistoriesEnv, func() uint64 { return 12 })
	seen := make(map[string]int)
	for n := range histories {
		h := &randomHistory[Tx]{
			txRig: r.renewed(), Rand: rand.New(rand.NewPCG(seed, n)),
			operation: fmt.Sprintf("%s-%d", name, n), model: make(model), seen: seen,
		}
		h.play(steps, step)
		h.clear()
		if r.Failed() {
			r.Logf("in history %d, after %d changes; repeat with %s=%d", n, len(h.asked), SeedEnv, seed)
			return
		}
	}
	if r.Logf("answers: %v", seen); histories >= 12 && len(seen) < enough {
		r.Errorf("only these answers were seen: %v; repeat with %s=%d", seen, SeedEnv, seed)
	}
}

func fromEnv(t *testing.T, name string, otherwise func() uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// randomHistory is one sequence of calls about a few records of its own.
type randomHistory[Tx any] struct {
	*txRig[Tx]
	*rand.Rand

	operation string
	model     model
	asked     []store.Change
	owners    uint64
	effects   int            // drawn for transactions
	seen      map[string]int // how often an answer was given, in all histories
}

// records is how many a history is about: few, so that they meet.
const records = 4

func (h *randomHistory[Tx]) play(steps int, step func(h *randomHistory[Tx])) {
	for n := range steps {
		switch h.IntN(8) {
		case 0:
			if _, err := h.store.Purge(h.ctx, 1000); err != nil {
				h.Errorf("Purge: %v", err)
			}
			h.model.purge()
		case 1:
			h.dequeue()
		default:
			step(h)
		}
		h.compare()
		if n%5 == 4 {
			h.compareReports()
		}
		if h.Failed() {
			return
		}
	}
}

// renewed is a rig with time of its own, so that any number of histories can
// follow each other.
func (r *txRig[Tx]) renewed() *txRig[Tx] {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patient)
	r.Cleanup(cancel)
	inner, with := *r.rig, *r
	inner.ctx, with.rig = ctx, &inner
	return &with
}

// clear takes away what the history has left, so that the next ones are as quick.
func (h *randomHistory[Tx]) clear() {
	for id, s := range h.model {
		gone := store.Change{If: s.Token, To: store.Record{ID: id, Token: token(store.Failed, s.Attempt), Expire: -1}}
		if _, err := swapAll(h.ctx, h.store, []store.Change{gone}); err != nil {
			h.Errorf("Swap: %v", err)
		}
	}
	if _, err := h.store.Purge(h.ctx, 1000); err != nil {
		h.Errorf("Purge: %v", err)
	}
}

// ask asks both and compares the answers.
func (h *randomHistory[Tx]) ask(changes []store.Change) {
	h.asked = append(h.asked, changes...)
	answers, err := swapAll(h.ctx, h.store, changes)
	if err != nil {
		h.Errorf("Swap: %v", err)
		return
	}
	h.compareAnswers(h.model, changes, answers)
}
