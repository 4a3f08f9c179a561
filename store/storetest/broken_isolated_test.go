package storetest_test

import (
	"context"
	"sync/atomic"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// isolation is whether the replicas of a hooked store are away. The store then applies
// changes as usual, but cannot confirm them.
type isolation struct {
	away atomic.Bool

	confirms bool // a change that is found applied is confirmed all the same
	shows    bool // a final record is shown all the same
	commits  bool // a commit is confirmed all the same
	repeats  bool // a repeated Dequeue returns its claims all the same
	rereads  bool // a Dequeue that rereads returns its claims all the same
}

// brokenIsolated behave correctly until their replicas are away.
func brokenIsolated() []brokenStore {
	return []brokenStore{
		{"a repeated change that is confirmed without replicas", "Again/NotYetSafe", func(h *hooked) { h.confirms = true }},
		{"a final state that is shown without replicas", "Again/NotYetSafe", func(h *hooked) { h.shows = true }},
		{"a commit that is confirmed without replicas", "AgainTx/NotYetSafe", func(h *hooked) { h.commits = true }},
		{"claims that a repeated Dequeue returns without replicas", "Again/Dequeue", func(h *hooked) { h.repeats = true }},
		{"claims that are read again without replicas", "Again/Dequeue", func(h *hooked) { h.rereads = true }},
	}
}

// Isolate implements Subject.Isolate.
func (h *hooked) Isolate() (restore func()) {
	h.away.Store(true)
	return func() { h.away.Store(false) }
}

func (h *hooked) Capabilities(ctx context.Context) (store.Capabilities, error) {
	caps, err := h.Store.Capabilities(ctx)
	caps.Survives = store.Failover
	if h.caps != nil {
		h.caps(&caps)
	}
	return caps, err
}

func (h *hooked) swapIsolated(ctx context.Context, cs []store.Change) ([]store.SwapResult, error) {
	repeated := h.now(cs[0].To.ID).Token == cs[0].To.Token
	as, err := h.plainSwap(ctx, cs)
	if err == nil && repeated && h.confirms {
		return as, nil
	}
	return nil, errBroken
}

func (h *hooked) dequeueIsolated(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	again := h.repeats && h.hasClaims(ctx, d) || h.rereads && d.Reread
	rs, err := h.Store.Dequeue(ctx, d)
	if err == nil && !again {
		return nil, errBroken
	}
	return rs, err
}

// hides reports whether one of the records must not be shown.
func (h *hooked) hides(as []store.SwapResult) bool {
	for _, a := range as {
		if a.Token.State.Final() && h.away.Load() && !h.shows {
			return true
		}
	}
	return false
}

func (h *hooked) atomicIsolated(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
	verdict, err := h.Store.Atomic(ctx, id, hold, run)
	return h.isolatedVerdict(verdict, err)
}

func (h *hooked) batchIsolated(ctx context.Context, c store.Change, hold bool, b memory.Batch) (store.SwapResult, store.Verdict, error) {
	answer, verdict, err := h.Store.AtomicBatch(ctx, c, hold, b)
	verdict, err = h.isolatedVerdict(verdict, err)
	return answer, verdict, err
}

func (h *hooked) isolatedVerdict(verdict store.Verdict, err error) (store.Verdict, error) {
	if verdict == store.Committed && !h.commits {
		return store.Unknown, errBroken
	}
	return verdict, err
}
