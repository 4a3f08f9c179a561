package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

const (
	// SeedEnv names the environment variable that repeats random histories: the
	// seed that a failure prints.
	SeedEnv = "STORETEST_SEED"

	// HistoriesEnv names the environment variable with the number of random
	// histories of each kind. The default is 12.
	HistoriesEnv = "STORETEST_HISTORIES"
)

// modelChecks make the same random calls to the store and the model, and require
// the same answers after every step.
func modelChecks() []storeCheck {
	return []storeCheck{
		{"RandomHistories", func(r *harness) {
			r.randomly("model", 3, func(h *randomHistory) { h.swap(h.batch()) })
		}},
	}
}

// randomly runs histories of some steps, each with its own records. It requires
// enough different answers, because too few would prove nothing.
func (r *harness) randomly(name string, enough int, step func(h *randomHistory)) {
	const steps = 25
	seed := fromEnv(r.T, SeedEnv, rand.Uint64)
	histories := fromEnv(r.T, HistoriesEnv, func() uint64 { return 12 })
	seen := make(map[string]int)
	for n := range histories {
		h := &randomHistory{
			harness: r.renewed(), Rand: rand.New(rand.NewPCG(seed, n)),
			operation: fmt.Sprintf("%s-%d", name, n), model: make(model), seen: seen,
		}
		h.play(steps, step)
		h.clear()
		if r.Failed() {
			r.Logf("in history %d, after %d changes; repeat with %s=%d", n, len(h.sent), SeedEnv, seed)
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
	check.Require(t, err, "%s", name)
	return n
}

// randomHistory is one sequence of calls about a few records of its own.
type randomHistory struct {
	*harness
	*rand.Rand

	operation string
	model     model
	sent      []store.Change
	dequeued  []uint64       // the owners of earlier calls of Dequeue
	effects   int            // drawn for transactions
	seen      map[string]int // how often each answer was given, in all histories
}

// records is the number of records of a history: few, so that calls meet.
const records = 4

func (h *randomHistory) play(steps int, step func(h *randomHistory)) {
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

// renewed is a harness with a fresh timeout, so that any number of histories can
// follow each other.
func (r *harness) renewed() *harness {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	r.Cleanup(cancel)
	with := *r
	with.ctx = ctx
	return &with
}

// clear removes the records of the history, so that the next histories are as fast.
func (h *randomHistory) clear() {
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

// swap makes the changes in the store and the model and compares the answers.
func (h *randomHistory) swap(changes []store.Change) {
	h.sent = append(h.sent, changes...)
	answers, err := swapAll(h.ctx, h.store, changes)
	if err != nil {
		h.Errorf("Swap: %v", err)
		return
	}
	h.compareAnswers(h.model, changes, answers)
}
