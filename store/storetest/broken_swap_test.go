package storetest_test

import (
	"slices"

	"github.com/semelgo/semel/store"
)

func brokenStores() []brokenStore {
	return slices.Concat(
		brokenSwap(), brokenFields(), brokenKeys(), brokenBatch(), brokenJoin(), brokenReads(), brokenClock(), brokenZombie(), brokenSweep(),
		brokenQueue(), brokenRepeats(), brokenQueueTx(), brokenTx(), brokenAtomicBatch(), brokenAfterEnd(), brokenRace(), brokenConnection(), brokenIsolated(), brokenOwnTx(),
	)
}

func brokenSwap() []brokenStore {
	return []brokenStore{
		{"a create that overwrites", "Swap/CreateOnce", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if isCreate(*c) && now.Token != c.To.Token {
					c.If = now.Token
				}
			})
		}},
		{"an update that ignores the state", "Swap/State", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if !isBeat(*c) && now.Attempt == c.If.Attempt && now.Owner == c.If.Owner {
					c.If.State = now.State
				}
			})
		}},
		{"an update that ignores the attempt", "Swap/Attempt", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if !isBeat(*c) && now.State == c.If.State && now.Owner == c.If.Owner {
					c.If.Attempt = now.Attempt
				}
			})
		}},
		{"an update that ignores the owner", "Swap/Owner", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if !isBeat(*c) && now.State == c.If.State && now.Attempt == c.If.Attempt {
					c.If.Owner = now.Owner
				}
			})
		}},
		{"a repeated change that loses", "Swap/Repeated", repeatLoses},
		{"an answer that is remembered for too long", "Swap/RepeatedLate", remembersAnswers},
		{"a heartbeat that ignores the owner", "Heartbeat/WrongOwner", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if isBeat(*c) && now.State == c.If.State && now.Attempt == c.If.Attempt {
					c.If, c.To.Token = now.Token, now.Token
				}
			})
		}},
		{"a lease that cannot be renewed late", "Heartbeat/Late", func(h *hooked) {
			h.swapOne = func(c store.Change) (store.SwapResult, error) {
				if now := h.now(c.To.ID); isBeat(c) && now.Due < 0 {
					return store.SwapResult{Token: store.Token{State: store.InProgress}, Record: &now}, nil
				}
				return h.one(c)
			}
		}},
		{"a heartbeat that writes what it carries", "Heartbeat/ChangesTimesOnly", heartbeatWrites},
	}
}

// repeatLoses returns another current record for a repeated change.
func repeatLoses(h *hooked) {
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		now := h.now(c.To.ID)
		if now.Token == c.To.Token && !isBeat(c) {
			now.Owner++
			return store.SwapResult{Token: now.Token, Record: &now}, nil
		}
		return h.one(c)
	}
}

// remembersAnswers returns the result of the first time for a repeated change.
func remembersAnswers(h *hooked) {
	inForce := make(map[store.Token]bool)
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if inForce[c.To.Token] && !isBeat(c) {
			return store.SwapResult{Token: c.To.Token}, nil
		}
		a, err := h.one(c)
		inForce[c.To.Token] = a.Applied(c)
		return a, err
	}
}

func heartbeatWrites(h *hooked) {
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		if !isBeat(c) || c.To.Outcome == nil {
			return h.one(c)
		}
		aside, back := c, c
		aside.To.State, aside.To.Owner = store.InDoubt, c.To.Owner+1
		back.If = aside.To.Token
		if a, err := h.one(aside); err != nil || !a.Applied(aside) {
			return a, err
		}
		return h.one(back)
	}
}

func brokenFields() []brokenStore {
	return []brokenStore{
		{"a nil outcome that clears", "Fields/NilKeeps", func(h *hooked) {
			h.changing(func(c *store.Change, _ store.Record) {
				if !isBeat(*c) && c.To.Outcome == nil {
					c.To.Outcome = []byte{}
				}
			})
		}},
		{"an empty outcome taken for none", "Fields/EmptyReplaces", func(h *hooked) {
			h.changing(func(c *store.Change, _ store.Record) {
				if len(c.To.Outcome) == 0 {
					c.To.Outcome = nil
				}
			})
		}},
		{"a fingerprint that changes", "Fields/Identity", fingerprintChanges},
		{"a taint that is lost in a release", "Fields/Tainted", func(h *hooked) {
			h.changing(func(c *store.Change, _ store.Record) {
				if c.To.State == store.Pending {
					c.To.Tainted = false
				}
			})
		}},
		{"a priority that is written again", "Fields/Priority", priorityChanges},
		{"an outcome that is cut", "Fields/Largest", func(h *hooked) {
			const most = 1 << 16
			h.reads = func(r *store.Record) { r.Outcome = r.Outcome[:min(len(r.Outcome), most)] }
		}},
		{"answers that are sorted by what they say", "Batch/Order", func(h *hooked) {
			h.answers = func(cs []store.Change, as []store.SwapResult) ([]store.SwapResult, error) {
				return winnersFirst(cs, as), nil
			}
		}},
	}
}

// winnersFirst returns the results of applied changes before those of superseded
// ones, as a store does that reads the latter in a second round trip.
func winnersFirst(cs []store.Change, as []store.SwapResult) []store.SwapResult {
	var won, lost []store.SwapResult
	for i, a := range as {
		switch {
		case a.Err != nil:
			return as
		case a.Applied(cs[i]):
			won = append(won, a)
		default:
			lost = append(lost, a)
		}
	}
	return append(won, lost...)
}

func priorityChanges(h *hooked) {
	written := make(map[store.ID]int8)
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		a, err := h.one(c)
		h.mu.Lock()
		defer h.mu.Unlock()
		if a.Applied(c) {
			written[c.To.ID] = c.To.Priority
		}
		return a, err
	}
	h.reads = func(r *store.Record) {
		if p, ok := written[r.ID]; ok {
			r.Priority = p
		}
	}
}

func fingerprintChanges(h *hooked) {
	written := make(map[store.ID][]byte)
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		a, err := h.one(c)
		if a.Applied(c) && c.To.Fingerprint != nil {
			written[c.To.ID] = slices.Clone(c.To.Fingerprint)
		}
		return a, err
	}
	h.reads = func(r *store.Record) {
		if f, ok := written[r.ID]; ok {
			r.Fingerprint = slices.Clone(f)
		}
	}
}
