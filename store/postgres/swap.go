package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// Swap applies the changes in one round trip and one transaction, and reads the
// current records of changes that were not applied in a second one. If another open
// transaction blocks it for a tenth of a second, each change is retried alone, and
// is Busy if it is blocked. The total wait is at most half a second: after 128
// changes were busy alone, the others are Busy without a retry. Changes of more
// than 16 MiB are sent in several round trips, each of which may wait so long.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("swap", err)
	}
	w := swapper{in: poolSender{s}, on: t, frames: &s.texts.swap, confirmed: s.replicated.Load()}
	if own := s.sessions.take(ctx); own.Conn != nil {
		defer own.Release()
		w.own = own
	}
	return w.answers(ctx, s, changes)
}

// SwapTx is Swap within tx. It uses a savepoint, so that the transaction continues
// if one of its statements fails. It restores the settings of tx. In a transaction
// above read committed, a record that another transaction has written since the
// begin fails with store.ErrConflict.
func (s *Store) SwapTx(ctx context.Context, tx pgx.Tx, changes []store.Change) ([]store.SwapResult, error) {
	if tx == nil {
		return nil, errors.New("swap: the transaction is nil")
	}
	return s.swapIn(ctx, tx, changes)
}

// swapIn is SwapTx in the transaction that is open on a connection.
func (s *Store) swapIn(ctx context.Context, tx batchExecer, changes []store.Change) ([]store.SwapResult, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("swap", err)
	}
	w := swapper{in: txSender{tx}, on: t, frames: &s.texts.swapTx, undo: tx, confirmed: s.replicated.Load()}
	return w.answers(ctx, s, changes)
}

// swapper makes changes, in a transaction or each batch in its own.
type swapper struct {
	in        sender
	own       lease // of the sessions, for the first try; none if none is free
	on        *tables
	confirmed bool   // a standby must have what was applied before
	undo      execer // the transaction in which a failure is undone; nil: it is undone by itself
	*frames
}

// execer is a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// batchExecer is a transaction, or the connection on which it is open.
type batchExecer interface {
	execer
	batchSender
}

// answers is swap for the store's methods.
func (w *swapper) answers(ctx context.Context, s *Store, changes []store.Change) ([]store.SwapResult, error) {
	answers, err := w.swap(ctx, changes)
	if err != nil {
		return nil, s.fault("swap", err)
	}
	return answers, nil
}

func (w *swapper) swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	answers := make([]store.SwapResult, len(changes))
	items, err := checkAll(ctx, changes, answers)
	if err != nil {
		return nil, err
	}
	var missed []swapItem
	for _, batch := range portions(items) {
		late, err := w.batch(ctx, batch)
		if err != nil {
			return nil, withConflict(err)
		}
		missed = append(missed, late...)
	}
	if err := w.answerFromCurrent(ctx, missed); err != nil {
		return nil, withConflict(err)
	}
	return answers, nil
}

// batch makes the changes at once or, if one of them prevents that, each alone. It
// sets the results of applied, busy and refused changes, and returns the others.
func (w *swapper) batch(ctx context.Context, items []swapItem) ([]swapItem, error) {
	missed, err := w.first(ctx, items)
	switch {
	case err == nil:
		return missed, nil
	case len(items) == 1:
		return w.answerAlone(items[:1], err)
	case !isBusy(err) && !isRefusal(err):
		return nil, err
	}
	return w.swapAlone(ctx, items)
}

// first makes the changes for the first time.
func (w *swapper) first(ctx context.Context, items []swapItem) (missed []swapItem, err error) {
	switch {
	case w.own.Conn != nil:
		return w.send(ctx, connSender{w.own.Conn}, frame{}, items)
	case len(items) > most:
		return w.send(ctx, w.in, w.many, items)
	default:
		return w.send(ctx, w.in, w.one, items)
	}
}

// swapAlone makes the changes one by one, with a shorter wait the more of them are
// busy.
func (w *swapper) swapAlone(ctx context.Context, items []swapItem) (missed []swapItem, err error) {
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

// answerAlone sets the result of one change from its own error, or returns the
// change if the current record decides.
func (w *swapper) answerAlone(one []swapItem, err error) (missed []swapItem, _ error) {
	it := &one[0]
	switch {
	case w.isFinal(err):
		return nil, err
	case w.on.hasNoPartition(err) && kindOf(it.Change) == create:
		it.lacks = err
		return one, nil
	case isBusy(err), w.on.hasNoPartition(err):
		it.answer.Busy = true
	case isRefusal(err):
		it.answer.Err = fmt.Errorf("swap record %s: %w", it.To.ID, err)
	default:
		return nil, err
	}
	return nil, nil
}

// isFinal reports whether a retry would fail again: after a conflict within a
// caller's transaction, whose snapshot does not change.
func (w *swapper) isFinal(err error) bool { return w.undo != nil && isConflict(err) }

// send makes the changes in one round trip, and sets the results of the applied
// ones.
func (w *swapper) send(ctx context.Context, in sender, f frame, items []swapItem) (missed []swapItem, err error) {
	if err := trip(ctx, in, f, func(b *pgx.Batch) { queue(b, w.on, items) }); err != nil {
		return nil, w.undone(ctx, err)
	}
	return answered(items), nil
}

// answered sets the results of the changes that were made, and returns the others.
func answered(items []swapItem) (missed []swapItem) {
	for i := range items {
		if items[i].made {
			items[i].answer.Token = items[i].To.Token
		} else {
			missed = append(missed, items[i])
		}
	}
	return missed
}

// undone goes back to the savepoint before the failed round trip.
func (w *swapper) undone(ctx context.Context, err error) error {
	if w.undo == nil || errorOf(err) == nil {
		return err
	}
	// It is not prepared, because an aborted transaction refuses that.
	_, failed := w.undo.Exec(ctx, undoSwap+"; "+keepSwap, pgx.QueryExecModeSimpleProtocol)
	if failed != nil {
		return fmt.Errorf("%w (undo: %w)", err, failed)
	}
	return err
}

// answerFromCurrent sets the results of changes that may not have been applied,
// from the current records.
func (w *swapper) answerFromCurrent(ctx context.Context, missed []swapItem) error {
	if len(missed) == 0 {
		return nil
	}
	of := lookup{ids: make([]store.ID, len(missed)), confirmed: w.confirmed, owners: make([]int64, len(missed))}
	for i := range missed {
		of.ids[i], of.owners[i] = missed[i].To.ID, stored(missed[i].To.Token).owner
	}
	in, f := w.in, w.look
	if w.own.Conn != nil && !w.own.IsClosed() {
		in, f = connSender{w.own.Conn}, frame{}
	}
	found, err := get(ctx, in, w.on, f, of)
	if err != nil {
		return err
	}
	for i := range missed {
		it := &missed[i]
		r := found[i].Record
		switch {
		case r == nil && it.lacks != nil:
			it.answer.Err = fmt.Errorf("swap record %s: %w: %w", it.To.ID, store.ErrNoPartition, it.lacks)
		case r == nil:
		case r.Token == it.To.Token: // the change is repeated, or was made next to one that failed
			it.answer.Token = r.Token
		default:
			it.answer.Token, it.answer.Record = r.Token, r
		}
	}
	return nil
}
