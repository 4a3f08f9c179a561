package semeltest

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

// transact makes a transaction of both: with the right to a record or without,
// with other changes in it and an effect, and any of the four ends.
func (h *randomHistory[Tx]) transact() {
	key, inside := h.IntN(records), h.model.clone()
	id, hold := h.record(key).ID, h.IntN(2) == 0
	h.effects++
	effect := fmt.Sprintf("%s-%d", h.operation, h.effects)
	var end randomEnd
	verdict, err := h.begun(id, hold, func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error) {
		h.compareTold(id, stands)
		h.act(ctx, tx, effect)
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
	h.mustEffects(effect, wantEffects)
}

// begun is Atomic, asked again as long as it does not come to run: a database
// that is slow to give up its locks may be busy with the transaction before.
func (h *randomHistory[Tx]) begun(id store.ID, hold bool, run runFunc[Tx]) (verdict store.Verdict, err error) {
	const tries = 100
	for range tries {
		ran := false
		verdict, err = h.tx.Atomic(h.ctx, id, hold, func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error) {
			if stands.Busy {
				return nil, errOwn
			}
			ran = true
			return run(ctx, tx, stands)
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

func (h *randomHistory[Tx]) compareTold(id store.ID, stands store.SwapResult) {
	h.Helper()
	want, there := h.model[id]
	if stands.Token != want.Token || (stands.Record != nil) != there || stands.Busy || stands.Err != nil {
		h.Errorf("run is told %s, want %s", showAnswer(stands), showToken(want.Token))
	} else if there {
		h.compareRecords("run is told what stands", *stands.Record, want.Record)
	}
}

// writeInside asks the transaction for up to two batches of changes.
func (h *randomHistory[Tx]) writeInside(ctx context.Context, tx Tx, inside model) {
	h.Helper()
	for range h.IntN(3) {
		var changes []store.Change
		for _, key := range h.Perm(records)[:1+h.IntN(2)] {
			changes = append(changes, h.change(inside, key))
		}
		h.asked = append(h.asked, changes...)
		h.compareAnswers(inside, changes, h.swapTx(ctx, tx, changes...))
	}
}

// randomEnd draws an end. A last change that keeps a failure is asked of what
// stands once the transaction's writes are undone.
func (h *randomHistory[Tx]) randomEnd(inside model, key int) randomEnd {
	switch h.IntN(8) {
	case 0:
		return randomEnd{nil, errOwn}
	case 1:
		return randomEnd{nil, nil}
	case 2, 3:
		c := h.change(h.model, key)
		h.asked = append(h.asked, c)
		return randomEnd{&c, errOwn}
	default:
		c := h.change(inside, key)
		h.asked = append(h.asked, c)
		return randomEnd{&c, nil}
	}
}

// told is what Atomic must say.
type told struct {
	verdict store.Verdict
	err     error
}

// end returns what stands after a transaction that wrote what is inside, and
// what is told of it.
func (m model) end(inside model, e randomEnd) (model, told) {
	if e.last == nil && e.failed != nil {
		return m, told{store.NotCommitted, errOwn}
	}
	if e.failed != nil {
		inside = m.clone() // what run wrote is undone
	}
	if e.last != nil {
		if _, wrote := inside.swap(*e.last); !wrote {
			return m, told{store.NotCommitted, store.ErrSuperseded}
		}
	}
	return inside, told{store.Committed, nil}
}

func (m model) clone() model { return maps.Clone(m) }
