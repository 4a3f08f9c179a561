package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// Swap applies the changes in one round trip and one transaction, and reads in a
// second one what stands instead of those that are not in force. If an open
// transaction of somebody else is in the way for longer than a tenth of a second,
// each change is asked again alone, and is Busy if it is in the way of this one.
// The whole waits for half a second at most for others who stay in the way: when 128
// changes were busy alone, those that were not asked again are answered Busy too.
// Changes of more than 16 MiB in all go in several trips, each of which may wait so long.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("swap", err)
	}
	own := s.sessions.take(ctx)
	if own != nil {
		defer s.sessions.give(own)
	}
	w := swapper{in: pooling{s}, own: own, on: t, frames: &s.texts.swap}
	return w.answers(ctx, s, changes)
}

// SwapTx is Swap within tx. Its statements are behind a savepoint, so that the
// transaction goes on when one of them fails; the settings of tx are left as they
// were. In a transaction above read committed, a record that somebody else has
// written since the transaction began fails with store.ErrConflict.
func (s *Store) SwapTx(ctx context.Context, tx pgx.Tx, changes []store.Change) ([]store.SwapResult, error) {
	if tx == nil {
		return nil, errors.New("swap: the transaction is nil")
	}
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("swap", err)
	}
	w := swapper{in: over{tx}, on: t, frames: &s.texts.swapTx, undo: tx}
	return w.answers(ctx, s, changes)
}

const (
	saveSwap = `SAVEPOINT semel_swap`
	keepSwap = `RELEASE SAVEPOINT semel_swap`
	undoSwap = `ROLLBACK TO SAVEPOINT semel_swap`
)

// swapper makes changes, in a transaction or each batch in its own.
type swapper struct {
	in   sender
	own  *session // unless nil, for what needs no more patience than it has
	on   *tables
	undo execer // in which what failed is to be undone; nil: it is
	*frames
}

// frames are those of the trips of a swapper.
type frames struct {
	one   frame // of a few changes
	many  frame // of changes from arrays
	look  frame // of what reads
	alone frame // of one change that was busy with others
	hasty frame // likewise, after some were busy still
}

// execer is a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// item is one change of a batch.
type item struct {
	*store.Change

	answer *store.SwapResult
	made   bool
	lacks  error // why a new record has no place, unless one stands
}

// answers is swap for the methods of the store.
func (w *swapper) answers(ctx context.Context, s *Store, changes []store.Change) ([]store.SwapResult, error) {
	answers, err := w.swap(ctx, changes)
	if err != nil {
		return nil, s.fault("swap", err)
	}
	return answers, nil
}

func (w *swapper) swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	answers := make([]store.SwapResult, len(changes))
	items, err := accept(ctx, changes, answers)
	if err != nil {
		return nil, err
	}
	var missed []item
	for _, batch := range portions(items) {
		late, err := w.batch(ctx, batch)
		if err != nil {
			return nil, withConflict(err)
		}
		missed = append(missed, late...)
	}
	if err := w.tell(ctx, missed); err != nil {
		return nil, withConflict(err)
	}
	return answers, nil
}

// batch makes the changes at once or, if one of them is in the way of that, each
// alone. It answers those in force, busy or refused, and returns the others.
func (w *swapper) batch(ctx context.Context, items []item) ([]item, error) {
	missed, err := w.first(ctx, items)
	switch {
	case err == nil:
		return missed, nil
	case len(items) == 1:
		return w.answerAlone(items[:1], err)
	case !isBusy(err) && !isRefusal(err):
		return nil, err
	}
	return w.each(ctx, items)
}

// first makes the changes for the first time.
func (w *swapper) first(ctx context.Context, items []item) (missed []item, err error) {
	switch {
	case w.own != nil:
		begun, err := w.own.change(ctx, w.on, items)
		switch {
		case err != nil:
			return nil, err
		case begun:
			return told(items), nil
		}
		return w.send(ctx, w.own, frame{}, items)
	case len(items) > most:
		return w.send(ctx, w.in, w.many, items)
	default:
		return w.send(ctx, w.in, w.one, items)
	}
}

// each makes the changes one by one, with less patience the more of them are busy.
func (w *swapper) each(ctx context.Context, items []item) (missed []item, err error) {
	f, busy := w.alone, 0
	for i := range items {
		late, err := w.send(ctx, w.in, f, items[i:i+1])
		if err != nil {
			late, err = w.answerAlone(items[i:i+1], err)
		}
		if err != nil {
			return nil, err
		}
		missed = append(missed, late...)
		if !items[i].answer.Busy {
			continue
		}
		switch busy++; busy {
		case someBusy:
			f = w.hasty
		case manyBusy:
			for _, it := range items[i+1:] {
				it.answer.Busy = true
			}
			return missed, nil
		}
	}
	return missed, nil
}

// answerAlone answers the one change from the error it led to by itself, if that
// error is about it, or returns it to be answered by what stands.
func (w *swapper) answerAlone(one []item, err error) (missed []item, _ error) {
	it := &one[0]
	switch {
	case w.isFinal(err):
		return nil, err
	case w.on.hasNoPlace(err) && kindOf(it.Change) == create:
		it.lacks = err
		return one, nil
	case isBusy(err), w.on.hasNoPlace(err):
		it.answer.Busy = true
	case isRefusal(err):
		it.answer.Err = fmt.Errorf("swap record %s: %w", it.To.ID, err)
	default:
		return nil, err
	}
	return nil, nil
}

// isFinal says that to ask again would meet the same: a conflict within somebody's
// transaction, which goes on seeing what it has seen.
func (w *swapper) isFinal(err error) bool { return w.undo != nil && isConflict(err) }

// send makes the changes in one trip, and answers those that are in force by it.
func (w *swapper) send(ctx context.Context, in sender, f frame, items []item) (missed []item, err error) {
	all := func(b *pgx.Batch) { queue(b, w.on, items) }
	if wait := f.wait; wait != "" && len(items) == 1 && kindOf(items[0].Change) == create {
		all, f = func(b *pgx.Batch) { queueLone(b, w.on, &items[0], wait) }, frame{}
	}
	if err := trip(ctx, in, f, all); err != nil {
		return nil, w.undone(ctx, err)
	}
	return told(items), nil
}

// told answers the changes that were made, and returns the others.
func told(items []item) (missed []item) {
	for i := range items {
		if items[i].made {
			items[i].answer.Token = items[i].To.Token
		} else {
			missed = append(missed, items[i])
		}
	}
	return missed
}

// undone goes back to before the trip that failed.
func (w *swapper) undone(ctx context.Context, err error) error {
	if w.undo == nil || errorOf(err) == nil {
		return err
	}
	// Not prepared, which an aborted transaction refuses.
	_, failed := w.undo.Exec(ctx, undoSwap+"; "+keepSwap, pgx.QueryExecModeSimpleProtocol)
	if failed != nil {
		return fmt.Errorf("%w (undo: %w)", err, failed)
	}
	return err
}

// tell answers the changes that are not known to be in force by what stands.
func (w *swapper) tell(ctx context.Context, missed []item) error {
	if len(missed) == 0 {
		return nil
	}
	found, err := w.find(ctx, missed)
	if err != nil {
		return err
	}
	for i := range missed {
		it := &missed[i]
		r := found[it.To.ID]
		switch {
		case r == nil && it.lacks != nil:
			it.answer.Err = fmt.Errorf("swap record %s: %w: %w", it.To.ID, store.ErrNoPartition, it.lacks)
		case r == nil:
		case r.Token == it.To.Token: // asked again, or made beside one that was not
			it.answer.Token = r.Token
		default:
			it.answer.Token, it.answer.Record = r.Token, r
		}
	}
	return nil
}

// find reads what stands. Of what the changes themselves let stand it reads no more
// than that it does.
func (w *swapper) find(ctx context.Context, missed []item) (map[store.ID]*store.Record, error) {
	found := make(map[store.ID]*store.Record, len(missed))
	args := wanted(missed)
	in, f := w.in, w.look
	if w.own != nil && w.own.usable() {
		in, f = w.own, frame{}
	}
	err := trip(ctx, in, f, func(b *pgx.Batch) {
		b.Queue(w.on.others, args...).Query(eachRecord(func(r *store.Record) { found[r.ID] = r }))
		b.Queue(w.on.same, args...).Query(eachID(func(id store.ID) { found[id] = nil }))
	})
	for i := range missed {
		to := &missed[i].To
		if r, ok := found[to.ID]; ok && r == nil {
			found[to.ID] = &store.Record{ID: to.ID, Token: to.Token}
		}
	}
	return found, err
}

// wanted are the IDs and tokens of what the changes let stand.
func wanted(items []item) []any {
	ids, made := make([]pgtype.UUID, len(items)), newTokens(len(items))
	for i := range items {
		ids[i] = uuid(items[i].To.ID)
		made.put(i, items[i].To.Token)
	}
	return []any{ids, made.states, made.attempts, made.owners}
}
