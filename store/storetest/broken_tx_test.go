package storetest_test

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenTx are broken in transactions.
func brokenTx() []brokenStore {
	return []brokenStore{
		{"an update of no row that commits", "Atomic/MoveSuperseded", func(h *hooked) {
			h.committing(func(c store.Change, a store.SwapResult) bool {
				return !isCreate(c) && !c.IfDue && !a.Applied(c)
			})
		}},
		{"an insert that conflicts and commits", "Atomic/CreateSuperseded", func(h *hooked) {
			h.committing(func(c store.Change, a store.SwapResult) bool { return isCreate(c) && !a.Applied(c) })
		}},
		{"a change that is committed twice", "Atomic/AlreadyApplied", func(h *hooked) {
			h.committing(func(c store.Change, a store.SwapResult) bool { return a.Applied(c) })
		}},
		{"a panic that commits", "Atomic/Panic", panicCommits},
		{"a Goexit that commits", "Atomic/Goexit", goexitCommits},
		{"a transaction that ends with its context", "Atomic/ContextEnds", func(h *hooked) {
			h.ending(func(ctx context.Context, c *store.Change, err error) (*store.Change, error) {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return c, err
			})
		}},
		{"a failure without a savepoint", "Savepoint/UndoesWrites", func(h *hooked) {
			h.ending(func(_ context.Context, c *store.Change, err error) (*store.Change, error) {
				if c != nil {
					err = nil
				}
				return c, err
			})
		}},
		{"a lock that is not taken", "Lock/Busy", func(h *hooked) {
			h.atomic = func(ctx context.Context, id store.ID, _ bool, run runFunc) (store.Verdict, error) {
				return h.Store.Atomic(ctx, id, false, run)
			}
		}},
		{"a lock that outlives a rollback", "Lock/FreedByRollback", rightStays},
		{"a busy record that fails its neighbours", "SwapTx/BusyOutside", func(h *hooked) {
			h.answers = func(_ []store.Change, as []store.SwapResult) ([]store.SwapResult, error) {
				for _, a := range as {
					if a.Busy {
						return nil, errors.New("lock timeout")
					}
				}
				return as, nil
			}
		}},
		{"records that outlive a rollback", "SwapTx/Rollback", recordsStay},
		{"final states that are final", "Transition/redrive-Failed-Pending", func(h *hooked) {
			h.swapOne = func(c store.Change) (store.SwapResult, error) {
				if c.If.State == store.Failed && c.To.State == store.Pending {
					return store.SwapResult{Err: errors.New("a failed record stays failed")}, nil
				}
				return h.one(c)
			}
		}},
		{"a doubt that no transaction settles", "TransitionTx/settle-InDoubt-Failed", func(h *hooked) {
			h.ending(func(_ context.Context, c *store.Change, err error) (*store.Change, error) {
				if c != nil && c.If.State == store.InDoubt && c.To.State == store.Failed && c.If.Owner == c.To.Owner {
					return nil, errors.New("a record in doubt cannot fail")
				}
				return c, err
			})
		}},
	}
}

// ending alters what run returns.
func (h *hooked) ending(end func(ctx context.Context, c *store.Change, err error) (*store.Change, error)) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, current)
			return end(ctx, c, err)
		})
	}
}

// committing tries the last change first, and commits without it where anyway
// returns true.
func (h *hooked) committing(anyway func(c store.Change, a store.SwapResult) bool) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, current)
			if c == nil || err != nil || !isLate(*c, current) {
				return c, err
			}
			as, serr := h.Store.SwapTx(context.WithoutCancel(ctx), tx, []store.Change{*c})
			if serr == nil && as[0].Err == nil && anyway(*c, as[0]) {
				return nil, nil
			}
			return c, nil
		})
	}
}

// isLate reports whether c was superseded when the transaction began.
func isLate(c store.Change, current store.SwapResult) bool {
	return current.Token != c.If || c.IfDue && current.Record.Due > 0
}

func panicCommits(h *hooked) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		var value any
		verdict, err := h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (c *store.Change, err error) {
			defer func() {
				if value = recover(); value != nil {
					c, err = nil, nil
				}
			}()
			return run(ctx, tx, current)
		})
		if value != nil {
			panic(value)
		}
		return verdict, err
	}
}

func goexitCommits(h *hooked) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		var returned, panicked bool
		verdict, err := h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (c *store.Change, err error) {
			var value any
			var aside sync.WaitGroup
			aside.Go(func() {
				defer func() {
					value = recover()
					panicked = value != nil
				}()
				c, err = run(ctx, tx, current)
				returned = true
			})
			aside.Wait()
			if panicked {
				panic(value)
			}
			return c, err
		})
		if !returned {
			runtime.Goexit()
		}
		return verdict, err
	}
}

func rightStays(h *hooked) {
	stuck := make(map[store.ID]bool)
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		h.mu.Lock()
		busy := hold && stuck[id]
		h.mu.Unlock()
		mine := false
		verdict, err := h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			if busy {
				current = store.SwapResult{Busy: true}
			}
			mine = !current.Busy
			return run(ctx, tx, current)
		})
		if hold && mine && verdict == store.NotCommitted {
			h.mu.Lock()
			stuck[id] = true
			h.mu.Unlock()
		}
		return verdict, err
	}
}

// recordsStay keeps the writes of a run that fails on purpose.
func recordsStay(h *hooked) {
	written := make(map[*memory.Tx][]store.Change)
	h.swapTx = func(tx *memory.Tx, cs []store.Change) []store.Change {
		h.mu.Lock()
		defer h.mu.Unlock()
		written[tx] = append(written[tx], cs...)
		return cs
	}
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		var own *memory.Tx
		failed := false
		verdict, err := h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			own = tx
			c, err := run(ctx, tx, current)
			failed = c == nil && err != nil
			return c, err
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		if failed {
			for _, c := range written[own] {
				if _, err := h.one(c); err != nil {
					return verdict, err
				}
			}
		}
		return verdict, err
	}
}
