package storetest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenAtomicBatch are broken in batches of a change with statements.
func brokenAtomicBatch() []brokenStore {
	return []brokenStore{
		{"a batch without the lock that loses the outcome", "AtomicBatch/Commit", func(h *hooked) {
			h.sending(func(c *store.Change, hold *bool, _ *memory.Batch) {
				if !*hold && isCreate(*c) {
					c.To.Outcome = nil
				}
			})
		}},
		{"a statement that is left out because it is like the one before", "AtomicBatch/EachStatement", func(h *hooked) {
			h.sending(func(_ *store.Change, _ *bool, b *memory.Batch) {
				if len(*b) == 4 {
					*b = slices.Delete(*b, 2, 3)
				}
			})
		}},
		{"a batch of nothing that is not sent", "AtomicBatch/Empty", func(h *hooked) {
			h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
				if len(b) == 0 {
					return store.SwapResult{Token: c.To.Token}, store.Committed, nil
				}
				return h.Store.AtomicBatch(ctx, c, hold, b)
			}
		}},
		{"a batch whose create overwrites", "AtomicBatch/CreateSuperseded", func(h *hooked) {
			h.sending(func(c *store.Change, _ *bool, _ *memory.Batch) {
				if now := h.now(c.To.ID); isCreate(*c) && now.State == store.InProgress && now.Token != c.To.Token {
					c.If = now.Token
				}
			})
		}},
		{"a batch whose update ignores the token", "AtomicBatch/MoveSuperseded", func(h *hooked) {
			h.sending(func(c *store.Change, _ *bool, _ *memory.Batch) {
				if now := h.now(c.To.ID); !isCreate(*c) && now.State == store.InProgress {
					c.If = now.Token
				}
			})
		}},
		{"a batch that does not look at the clock", "AtomicBatch/NotDue", func(h *hooked) {
			h.sending(func(c *store.Change, _ *bool, _ *memory.Batch) { c.IfDue = false })
		}},
		{"a batch that is run again", "AtomicBatch/AlreadyApplied", runsAgain},
		{"a refused change taken for a busy one", "AtomicBatch/Rejected", func(h *hooked) {
			h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
				answer, verdict, err := h.Store.AtomicBatch(ctx, c, hold, b)
				if answer.Err != nil {
					answer = store.SwapResult{Busy: true}
				}
				return answer, verdict, err
			}
		}},
		{"a batch that commits up to what failed", "AtomicBatch/Fails", commitsUpTo},
		{"a lock that outlives a failed batch", "AtomicBatch/FailureFreesRecord", rightOutlivesBatch},
		{"a batch without a lock", "AtomicBatch/Locked", func(h *hooked) {
			h.sending(func(_ *store.Change, hold *bool, _ *memory.Batch) { *hold = false })
		}},
		{"a lock of all records", "AtomicBatch/OtherRecords", rightToAll},
		{"a batch for an ended context", "AtomicBatch/CanceledBefore", func(h *hooked) {
			h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
				return h.Store.AtomicBatch(context.WithoutCancel(ctx), c, hold, b)
			}
		}},
		{"a batch that ends with its context", "AtomicBatch/CanceledDuring", func(h *hooked) {
			h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
				answer, verdict, err := h.Store.AtomicBatch(ctx, c, hold, b)
				if err == nil && ctx.Err() != nil {
					return store.SwapResult{}, store.Unknown, ctx.Err()
				}
				return answer, verdict, err
			}
		}},
		{"a batch that looks, runs, and then writes", "AtomicBatch/Race", looksThenRuns},
	}
}

// sending alters the batch that is sent. The answer is that of the original batch.
func (h *hooked) sending(change func(c *store.Change, hold *bool, b *memory.Batch)) {
	h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
		change(&c, &hold, &b)
		return h.Store.AtomicBatch(ctx, c, hold, b)
	}
}

// runs commits the statements of b separately.
func (h *hooked) runs(ctx context.Context, b memory.Batch) error {
	_, err := h.Store.Atomic(ctx, store.ID{1}, false, func(_ context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
		for _, do := range b {
			if err := do(tx); err != nil {
				return nil, err
			}
		}
		return nil, nil //nolint:nilnil // it commits without a change
	})
	return err
}

func runsAgain(h *hooked) {
	h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
		if h.now(c.To.ID).Token == c.To.Token {
			if err := h.runs(ctx, b); err != nil {
				return store.SwapResult{}, store.NotCommitted, err
			}
		}
		return h.Store.AtomicBatch(ctx, c, hold, b)
	}
}

func commitsUpTo(h *hooked) {
	h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
		went := 0
		counted := make(memory.Batch, len(b))
		for i, do := range b {
			counted[i] = func(tx *memory.Tx) error {
				err := do(tx)
				if err == nil {
					went++
				}
				return err
			}
		}
		answer, verdict, err := h.Store.AtomicBatch(ctx, c, hold, counted)
		if err != nil && went > 0 {
			err = errors.Join(err, h.runs(ctx, b[:went]))
		}
		return answer, verdict, err
	}
}

func rightOutlivesBatch(h *hooked) {
	stuck := make(map[store.ID]bool)
	h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
		answer, verdict, err := h.Store.AtomicBatch(ctx, c, hold, b)
		h.mu.Lock()
		defer h.mu.Unlock()
		stuck[c.To.ID] = err != nil
		return answer, verdict, err
	}
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			if h.isRunning(stuck, id) && hold {
				current = store.SwapResult{Busy: true}
			}
			return run(ctx, tx, current)
		})
	}
}

func (h *hooked) isRunning(ids map[store.ID]bool, id store.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return ids[id]
}

func rightToAll(h *hooked) {
	open := 0
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		count := func(n int) int {
			h.mu.Lock()
			defer h.mu.Unlock()
			open += n
			return open
		}
		defer count(-1)
		count(1)
		return h.Store.Atomic(ctx, id, hold, run)
	}
	h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
		h.mu.Lock()
		busy := hold && open > 0
		h.mu.Unlock()
		if busy {
			return store.SwapResult{Busy: true}, store.NotCommitted, nil
		}
		return h.Store.AtomicBatch(ctx, c, hold, b)
	}
}

// looksThenRuns reads whether a batch could be applied, runs its statements, and
// then writes the record. In a race, other callers read at the same time.
func looksThenRuns(h *hooked) {
	errCould := errors.New("it could be made")
	l := h.newReadCounts()
	h.batch = func(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
		if !h.race.has(2) {
			return h.Store.AtomicBatch(ctx, c, hold, b)
		}
		answer, verdict, err := h.Store.AtomicBatch(ctx, c, hold, memory.Batch{func(*memory.Tx) error { return errCould }})
		if !errors.Is(err, errCould) {
			return answer, verdict, err
		}
		l.add(c.To.ID)
		l.awaitSecond(c.To.ID)
		if err := h.runs(ctx, b); err != nil {
			return store.SwapResult{}, store.NotCommitted, err
		}
		if answer, err = h.one(c); err == nil && answer.Applied(c) {
			return answer, store.Committed, nil
		}
		return answer, store.NotCommitted, err
	}
}
