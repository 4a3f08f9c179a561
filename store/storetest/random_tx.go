package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/semelgo/semel/store"
)

// randomEnd is how a random transaction ends: what its run returns.
type randomEnd struct {
	last   *store.Change
	failed error
}

// modelTxChecks are modelChecks with transactions.
func modelTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"RandomTransactions", func(r *txHarness[Tx]) {
			r.randomly("modeltx", 6, func(h *randomHistory) {
				tx := *r
				tx.harness = h.harness
				(&randomTx[Tx]{h, &tx}).transaction()
			})
		}},
	}
}

// randomTx is a random history with transactions.
type randomTx[Tx any] struct {
	*randomHistory

	tx *txHarness[Tx]
}

// transaction runs a random transaction in the store and the model: with or without
// the right to a record, with other changes, with an effect, and with any of the
// four ends.
func (h *randomTx[Tx]) transaction() {
	key, inside := h.IntN(records), h.model.clone()
	id, hold := h.record(key).ID, h.IntN(2) == 0
	h.effects++
	effect := fmt.Sprintf("%s-%d", h.operation, h.effects)
	var end randomEnd
	verdict, err := h.atomicUntilRun(id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		h.compareCurrent(id, current)
		h.tx.addEffect(ctx, tx, effect)
		h.writeInside(ctx, tx, inside)
		end = h.randomEnd(inside, key)
		return end.last, end.failed
	})
	after, want := h.model.end(inside, end)
	h.model = after
	h.seen[fmt.Sprint(want.verdict, want.err)]++
	if verdict != want.verdict || !errors.Is(err, want.err) || (err == nil) != (want.err == nil) {
		h.Errorf("Atomic that ends with %s, %v = %v, %v, want %v, %v", showLast(end.last), end.failed, verdict, err, want.verdict, want.err)
	}
	wantEffects := 0
	if want.verdict == store.Committed && end.failed == nil {
		wantEffects = 1
	}
	h.tx.mustHaveEffects(effect, wantEffects)
}

// atomicUntilRun calls Atomic until run is called: a database that releases its
// locks late may still be busy with the transaction before.
func (h *randomTx[Tx]) atomicUntilRun(id store.ID, hold bool, run runFunc[Tx]) (verdict store.Verdict, err error) {
	const tries = 100
	for range tries {
		ran := false
		verdict, err = h.tx.tx.Atomic(h.ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
			if current.Busy {
				return nil, errRun
			}
			ran = true
			return run(ctx, tx, current)
		})
		if ran {
			break
		}
	}
	return verdict, err
}

func showLast(c *store.Change) string {
	if c == nil {
		return "no change"
	}
	return show(*c)
}

func (h *randomHistory) compareCurrent(id store.ID, current store.SwapResult) {
	h.Helper()
	want, there := h.model[id]
	if current.Token != want.Token || (current.Record != nil) != there || current.Busy || current.Err != nil {
		h.Errorf("run gets %s, want %s", showAnswer(current), showToken(want.Token))
	} else if there {
		h.compareRecords("run gets the current record", *current.Record, want.Record)
	}
}

// writeInside makes up to two batches of changes in the transaction.
func (h *randomTx[Tx]) writeInside(ctx context.Context, tx Tx, inside model) {
	h.Helper()
	for range h.IntN(3) {
		var changes []store.Change
		for _, key := range h.Perm(records)[:1+h.IntN(2)] {
			changes = append(changes, h.change(inside, key))
		}
		h.sent = append(h.sent, changes...)
		h.compareAnswers(inside, changes, h.tx.swapTx(ctx, tx, changes...))
	}
}

// randomEnd draws an end. A last change that stores a failure applies to the record
// after the transaction's writes are undone.
func (h *randomHistory) randomEnd(inside model, key int) randomEnd {
	switch h.IntN(8) {
	case 0:
		return randomEnd{nil, errRun}
	case 1:
		return randomEnd{nil, nil}
	case 2, 3:
		c := h.change(h.model, key)
		h.sent = append(h.sent, c)
		return randomEnd{&c, errRun}
	default:
		c := h.change(inside, key)
		h.sent = append(h.sent, c)
		return randomEnd{&c, nil}
	}
}

// txResult is what Atomic must return.
type txResult struct {
	verdict store.Verdict
	err     error
}

// end returns the records after a transaction that wrote those of inside, and what
// Atomic must return.
func (m model) end(inside model, e randomEnd) (model, txResult) {
	if e.last == nil && e.failed != nil {
		return m, txResult{store.NotCommitted, errRun}
	}
	if e.failed != nil {
		inside = m.clone() // the writes of run are undone
	}
	if e.last != nil {
		if _, wrote := inside.swap(*e.last); !wrote {
			return m, txResult{store.NotCommitted, store.ErrSuperseded}
		}
	}
	return inside, txResult{store.Committed, nil}
}

func (m model) clone() model { return maps.Clone(m) }
