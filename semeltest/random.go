package semeltest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// SeedEnv names the environment variable that repeats a random history: the
// seed that its failure has printed.
const SeedEnv = "SEMELTEST_SEED"

func modelChecks() []storeCheck {
	return []storeCheck{{"RandomHistories", randomHistories}}
}

// randomHistories asks the store and the model the same, at random, and requires
// the same answers.
func randomHistories(r *rig) {
	const histories, steps = 20, 25
	seed := seedOf(r.T)
	for n := range histories {
		h := &randomHistory{
			rig: r, Rand: rand.New(rand.NewPCG(seed, uint64(n))),
			operation: fmt.Sprintf("model-%d", n), model: make(model),
		}
		for range steps {
			h.step()
		}
		if r.Failed() {
			r.Logf("after %d changes; repeat with %s=%d", len(h.asked), SeedEnv, seed)
			return
		}
	}
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(SeedEnv)
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", SeedEnv, err)
	}
	return seed
}

// randomHistory is one sequence of calls about a few records of its own.
type randomHistory struct {
	*rig
	*rand.Rand

	operation string
	model     model
	asked     []store.Change
	owners    uint64
}

// records is how many a history is about: few, so that they meet.
const records = 4

func (h *randomHistory) step() {
	if h.IntN(8) == 0 {
		if _, err := h.store.Purge(h.ctx, 1000); err != nil {
			h.Fatalf("Purge: %v", err)
		}
		h.model.purge()
	} else {
		h.ask(h.batch())
	}
	h.compare()
}

// ask asks both and compares the answers.
func (h *randomHistory) ask(changes []store.Change) {
	h.asked = append(h.asked, changes...)
	for i, got := range h.swap(changes...) {
		want := h.model.swap(changes[i])
		if got.Err != nil || got.Token != want.Token || (got.Record == nil) != (want.Record == nil) {
			h.Errorf("%s = %s, want %s", show(changes[i]), showAnswer(got), showAnswer(want))
		} else if want.Record != nil {
			if diff := diffRecords(*got.Record, *want.Record); diff != "" {
				h.Errorf("%s shows what stands otherwise (-want +got):\n%s", show(changes[i]), diff)
			}
		}
	}
}

// compare requires that the same stands.
func (h *randomHistory) compare() {
	due := func(s modelled) bool { return s.due && (s.State == store.Pending || s.State == store.InProgress) }
	for _, scan := range []struct {
		q     store.Query
		which func(modelled) bool
	}{
		{store.Query{Operation: h.operation}, func(modelled) bool { return true }},
		{store.Query{Operation: h.operation, Due: true}, due},
	} {
		found := h.scan(scan.q)
		ids := idsOf(found)
		slices.SortFunc(ids, compareIDs)
		if want := h.model.ids(scan.which); !slices.Equal(ids, want) {
			h.Errorf("Scan(%+v) gives %v, want %v", scan.q, ids, want)
			continue
		}
		for _, got := range found {
			if diff := diffRecords(got, h.model[got.ID].Record); diff != "" {
				h.Errorf("what stands differs (-want +got):\n%s", diff)
			}
		}
	}
}

// batch is one to three changes of different records.
func (h *randomHistory) batch() []store.Change {
	changes := make([]store.Change, 0, 3)
	for _, key := range h.Perm(records)[:1+h.IntN(3)] {
		changes = append(changes, h.change(key))
	}
	return changes
}

// change is a new one, or one that was asked for before.
func (h *randomHistory) change(key int) store.Change {
	rec := identity(h.operation, "scope", strconv.Itoa(key))
	if old := h.earlier(rec.ID); len(old) > 0 && h.IntN(4) == 0 {
		return old[h.IntN(len(old))]
	}
	c := store.Change{If: h.from(rec.ID), To: rec}
	if c.If.State == store.Pending || c.If.State == store.InProgress {
		c.IfDue = h.IntN(2) == 0
	}
	c.To.Due = []time.Duration{0, -time.Minute, long}[h.IntN(3)]
	c.To.Expire = []time.Duration{0, -time.Minute, long}[h.IntN(3)]
	if c.If.State == store.InProgress && h.IntN(4) == 0 {
		c.To.Token = c.If // a heartbeat
		return c
	}
	h.owners++
	c.To.Token = store.Token{
		State: store.States()[h.IntN(5)], Attempt: c.If.Attempt + h.Uint32N(2), Owner: h.owners,
	}
	c.To.Tainted = h.IntN(2) == 0
	c.To.Input, c.To.Outcome = h.content(), h.content()
	return c
}

// from is a token that stands, or stood, or never did.
func (h *randomHistory) from(id store.ID) store.Token {
	old := h.earlier(id)
	switch {
	case h.IntN(8) == 0:
		return store.Token{}
	case h.IntN(8) == 0 && len(old) > 0:
		return old[h.IntN(len(old))].To.Token
	default:
		return h.model[id].Token
	}
}

func (h *randomHistory) earlier(id store.ID) []store.Change {
	var of []store.Change
	for _, c := range h.asked {
		if c.To.ID == id {
			of = append(of, c)
		}
	}
	return of
}

func (h *randomHistory) content() []byte {
	return [][]byte{nil, {}, []byte("some"), []byte("other")}[h.IntN(4)]
}
