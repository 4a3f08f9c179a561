package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// Other writers hold locks for as long as their commit lasts. A Swap that meets one
// retries after firstPause, and after twice as long each time, before the record is
// Busy.
const (
	firstPause = 500 * time.Microsecond
	lastPause  = 16 * time.Millisecond
)

// Swap applies all changes in one transaction, and a single change in one statement.
// It fails as a whole if the batch is larger than MaxBatch or MaxBytes, or has a
// duplicate ID.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	f, results, valid, err := s.checked(ctx, changes)
	if err != nil || len(valid) == 0 {
		return results, err
	}
	conn, err := s.lanes.Conn(ctx)
	if err != nil {
		return nil, fault("swap", err)
	}
	defer conn.Close()
	w := &swapper{dialect: f, conn: conn, in: s.in(conn), changes: changes, results: results}
	if err := w.swap(ctx, valid); err != nil {
		return nil, fault("swap", err)
	}
	if err := s.confirmOn(ctx, f, conn, w.seen); err != nil {
		return nil, fault("swap", err)
	}
	return results, nil
}

// checked validates a batch. It returns the indexes of the valid changes, sorted by
// ID, so that batches cannot deadlock.
func (s *Store) checked(ctx context.Context, changes []store.Change) (f *dialect, results []store.SwapResult, valid []int, err error) {
	if err = ctx.Err(); err == nil {
		err = store.CheckBatch(changes, maxBatch)
	}
	if err == nil {
		f, err = s.dialect(ctx)
	}
	if err == nil {
		err = store.CheckBytes(changes, f.maxBytes)
	}
	if err != nil {
		return nil, nil, nil, fault("swap", err)
	}
	results = make([]store.SwapResult, len(changes))
	for i := range changes {
		if err := changes[i].Check(maxOutcome); err != nil {
			results[i].Err = fmt.Errorf("swap %w", err)
			continue
		}
		valid = append(valid, i)
	}
	slices.SortFunc(valid, func(a, b int) int { return bytes.Compare(changes[a].To.ID[:], changes[b].To.ID[:]) })
	return f, results, valid, nil
}

// swapper makes changes on one of the store's own connections.
type swapper struct {
	*dialect

	conn    *sql.Conn
	in      runner // conn, with the names of the store's tables
	changes []store.Change
	results []store.SwapResult
	seen    []*store.Record // records in the results that this call has not written
}

// swap makes some changes.
func (w *swapper) swap(ctx context.Context, some []int) error {
	missed, busy, err := w.batch(ctx, some)
	for pause := firstPause; len(busy) > 0 && err == nil && pause <= lastPause; pause *= 2 {
		if err = rest(ctx, pause); err != nil {
			break
		}
		var more []int
		more, busy, err = w.apart(ctx, busy)
		missed = append(missed, more...)
	}
	if err != nil {
		return err
	}
	for _, i := range busy {
		w.results[i] = store.SwapResult{Busy: true}
	}
	return w.look(ctx, missed)
}

// rest pauses for about d.
func rest(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, d/2+time.Duration(rand.Int64N(int64(d))))
}

// batch makes the changes in one transaction, in as few statements as possible. It
// returns those that may not have been applied, or, if a lock or a refused value stopped
// the batch, all of them as busy.
func (w *swapper) batch(ctx context.Context, some []int) (missed, busy []int, err error) {
	if len(some) == 1 {
		return w.alone(ctx, some)
	}
	var creates, updates []int
	for _, i := range some {
		if (w.changes[i].If == store.Token{}) {
			creates = append(creates, i)
		} else {
			updates = append(updates, i)
		}
	}
	groups := byShape(w.changes, updates)
	var steps []step
	for _, group := range groups {
		steps = append(steps, bulkUpdate(w.changes, group))
	}
	if len(creates) > 0 {
		groups, steps = append(groups, creates), append(steps, w.creates(creates))
	}
	counts, err := w.counts(ctx, w.in, steps)
	if err != nil {
		return nil, some, w.undo(ctx, err)
	}
	for g, group := range groups {
		if counts[g] != int64(len(group)) {
			missed = append(missed, group...) // the current records tell which
			continue
		}
		w.applied(group...)
	}
	return missed, nil, nil
}

func (w *swapper) applied(some ...int) {
	for _, i := range some {
		w.results[i] = store.SwapResult{Token: w.changes[i].To.Token}
	}
}

// undo rolls back after err. It returns nil if the changes may be retried one by one.
func (w *swapper) undo(ctx context.Context, err error) error {
	if codeOf(err) == 0 {
		return err
	}
	if failed := rollBack(ctx, w.conn); failed != nil {
		return errors.Join(err, failed)
	}
	if isBusy(err) || isRefusal(err) {
		return nil
	}
	return err
}

func (w *swapper) creates(group []int) step {
	st := step{text: into + row + strings.Repeat(", "+row, len(group)-1) + orNothing}
	for _, i := range group {
		st.args = append(st.args, createArgs(&w.changes[i].To)...)
	}
	return st
}

// alone makes one change in a statement that commits by itself.
func (w *swapper) alone(ctx context.Context, one []int) (missed, busy []int, err error) {
	n, err := w.make(ctx, one[0])
	switch {
	case isBusy(err):
		return nil, one, nil
	case err != nil || n < 0:
		return nil, nil, err
	case n == 0:
		return one, nil, nil
	}
	w.applied(one...)
	return nil, nil, nil
}

// make makes one change, and returns how many rows it changed: -1 if the server
// refuses its data.
func (w *swapper) make(ctx context.Context, i int) (int64, error) {
	text, args := statement(&w.changes[i])
	if (w.changes[i].If == store.Token{}) {
		text += orNothing
	}
	result, err := w.in.ExecContext(ctx, text, args...)
	if isRefusal(err) {
		w.results[i].Err = fmt.Errorf("swap record %s: %w", w.changes[i].To.ID, err)
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// apart makes the changes one by one in one transaction. A lock wait that fails undoes
// only its own statement.
func (w *swapper) apart(ctx context.Context, some []int) (missed, busy []int, err error) {
	if len(some) == 1 {
		return w.alone(ctx, some)
	}
	if _, err := w.conn.ExecContext(ctx, sqlBegin); err != nil {
		return nil, nil, err
	}
	var applied []int
	for at, i := range some {
		n, err := w.make(ctx, i)
		switch {
		case isConflict(err): // it undoes the transaction
			return nil, some, w.undo(ctx, err)
		case isBusy(err):
			busy = append(busy, i)
		case err != nil:
			return nil, nil, errors.Join(err, w.undo(ctx, err))
		case n == 0:
			missed = append(missed, i)
		case n > 0:
			applied = append(applied, i)
		}
		if len(busy) > w.mostBusy() {
			busy = append(busy, some[at+1:]...)
			break
		}
	}
	if _, err := w.conn.ExecContext(ctx, `COMMIT`); err != nil {
		if isConflict(err) {
			return nil, some, w.undo(ctx, err)
		}
		return nil, nil, errors.Join(err, w.undo(ctx, err))
	}
	w.applied(applied...)
	return missed, busy, nil
}

// look sets the results of changes that may not have been applied, from the current
// records.
func (w *swapper) look(ctx context.Context, missed []int) error {
	if len(missed) == 0 {
		return nil
	}
	ids := make([]store.ID, len(missed))
	for n, i := range missed {
		ids[n] = w.changes[i].To.ID
	}
	found, err := get(ctx, w.in, ids)
	if err != nil {
		return err
	}
	for _, i := range missed {
		c, r := &w.changes[i], found[w.changes[i].To.ID]
		w.results[i] = resultOf(c, r)
		if r != nil && (w.results[i].Applied(*c) || r.State.Final()) {
			w.seen = append(w.seen, r)
		}
	}
	return nil
}

// resultOf is the result of a change that may have been applied before.
func resultOf(c *store.Change, r *store.Record) store.SwapResult {
	switch {
	case r == nil:
		return store.SwapResult{}
	case r.Token == c.To.Token:
		return store.SwapResult{Token: r.Token}
	default:
		return store.SwapResult{Token: r.Token, Record: r}
	}
}

// rollBack ends the transaction of a connection, or closes the connection. A Galera node
// reports a conflict if it has rolled the transaction back for one of another node.
func rollBack(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	if isConflict(err) {
		_, err = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	}
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}
