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
	return s.swap(ctx, "swap", changes, nil)
}

func (s *Store) swap(ctx context.Context, doing string, changes []store.Change, note *store.Note) ([]store.SwapResult, error) {
	w := swapper{store: s, note: note}
	defer w.release()
	answers, err := w.swap(ctx, changes)
	return answers, s.fault(doing, err)
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
	w := swapper{store: s, in: tx, frames: &s.texts.swapTx, undo: tx}
	answers, err := w.swap(ctx, changes)
	return answers, s.fault("swap", err)
}

// swapper makes changes, in a transaction or each batch in its own.
type swapper struct {
	store  *Store
	note   *store.Note // about the only change; nil: none
	conn   lease       // outside of a caller's transaction
	in     batchSender
	on     *tables
	frames *frames
	undo   batchExecer // the transaction in which a failure is undone; nil: it is undone by itself
}

// connect finds the tables, and outside of a caller's transaction takes a connection for the
// first time, or if a server's error has closed the last one.
func (w *swapper) connect(ctx context.Context) (err error) {
	if w.undo != nil {
		w.on, err = w.store.tables(ctx)
		return err
	}
	if w.conn.Conn != nil && !w.conn.IsClosed() {
		return nil
	}
	w.release()
	if w.conn, err = w.store.connect(ctx); err != nil {
		return err
	}
	w.in, w.on, w.frames = w.conn.Conn, w.conn.on, w.store.texts.framesOf(w.conn)
	return nil
}

func (w *swapper) release() {
	if w.conn.Conn != nil {
		w.conn.Release()
	}
}

// batchExecer is a transaction, or the connection on which it is open.
type batchExecer interface {
	batchSender
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
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
	missed, err := w.send(ctx, first, items)
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

// swapAlone makes the changes one by one, until many of them are busy.
func (w *swapper) swapAlone(ctx context.Context, items []swapItem) (missed []swapItem, err error) {
	busy := 0
	for i := range items {
		late, err := w.send(ctx, alone, items[i:i+1])
		if err != nil {
			late, err = w.answerAlone(items[i:i+1], err)
		}
		if err != nil {
			return nil, err
		}
		missed = append(missed, late...)
		if items[i].answer.Busy {
			busy++
		}
		if busy == manyBusy {
			for _, it := range items[i+1:] {
				it.answer.Busy = true
			}
			break
		}
	}
	return missed, nil
}

// answerAlone sets the result of one change from its own error, or returns the
// change if the current record decides.
func (w *swapper) answerAlone(one []swapItem, err error) (missed []swapItem, _ error) {
	it := &one[0]
	switch {
	case w.undo != nil && isConflict(err): // the snapshot of the caller's transaction does not change
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

// send makes the changes in one round trip, sets the results of the applied ones, and
// returns the others.
func (w *swapper) send(ctx context.Context, which int, items []swapItem) (missed []swapItem, err error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	if err := send(ctx, w.in, w.frames[which], func(b *pgx.Batch) { w.queue(b, items) }); err != nil {
		return nil, w.undone(ctx, err)
	}
	for _, it := range items {
		if it.made {
			it.answer.Token = it.To.Token
		} else {
			missed = append(missed, it)
		}
	}
	return missed, nil
}

// undone goes back to the savepoint before the failed round trip.
func (w *swapper) undone(ctx context.Context, err error) error {
	if w.undo == nil || errorOf(err) == nil {
		return err
	}
	// It is not prepared, because an aborted transaction refuses that.
	if _, failed := w.undo.Exec(ctx, undoSwap+"; "+keepSwap, pgx.QueryExecModeSimpleProtocol); failed != nil {
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
	of := lookup{ids: make([]store.ID, len(missed)), confirmed: w.store.replicated.Load(), owners: make([]int64, len(missed))}
	for i := range missed {
		of.ids[i], of.owners[i] = missed[i].To.ID, stored(missed[i].To.Token).owner
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	found, err := get(ctx, w.in, w.on, w.frames[first], of)
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
