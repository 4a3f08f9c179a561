package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// beginPause is the last pause before a held record is Busy.
const beginPause = 2 * time.Millisecond

// Atomic begins a transaction at the isolation level read committed. With hold it
// locks the record, or reserves its ID if there is none, so that a Swap of an existing
// record is Busy.
//
// After a deadlock, or if the connection is lost, the transaction refuses further
// statements, and is not committed whatever run returns. A statement that waited too
// long for a lock, or was interrupted otherwise, prevents the commit, too, unless run
// has gone back to a savepoint since.
//
// Commit of the *sql.Tx that run receives is refused, and rolls back. A statement that
// ends the transaction, as COMMIT and CREATE TABLE do, is found at the end, because the
// transaction's savepoint is gone: the error is [ErrEnded].
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	t, current, err := s.begin(ctx, id, hold)
	switch {
	case err == nil:
	case hold && isBusy(err):
		return runBusy(ctx, run)
	default:
		return store.NotCommitted, fault("begin", err)
	}
	defer t.leave() // also when run panics or ends its goroutine
	if err := s.confirm(ctx, t.dialect, final(current)); err != nil {
		return store.NotCommitted, fault("begin", err)
	}
	last, failed := run(ctx, t.tx, current)
	return t.end(context.WithoutCancel(ctx), last, failed)
}

func runBusy(ctx context.Context,
	run func(ctx context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	last, err := run(ctx, nil, store.SwapResult{Busy: true})
	if err == nil || last != nil {
		err = errors.New("semel/mysql: another transaction has the right to the record")
	}
	return store.NotCommitted, err
}

// transaction is one Atomic.
type transaction struct {
	*dialect

	store   *Store
	conn    *sql.Conn
	session *session
	tx      *sql.Tx
	id      store.ID
	guards  []any // the mark, and the ID of a record that is held
}

// begin begins a transaction on a connection of the application's pool.
func (s *Store) begin(ctx context.Context, id store.ID, hold bool) (*transaction, store.SwapResult, error) {
	t, err := s.take(ctx, id)
	if err != nil {
		return nil, store.SwapResult{}, err
	}
	t.guards = []any{newMark()}
	if hold {
		t.guards = append(t.guards, id[:])
	}
	for pause := firstPause; ; pause *= 2 {
		current, err := t.open(withKind(context.WithoutCancel(ctx), beginning), hold)
		if err == nil {
			return t, current, nil
		}
		t.leaveTx()
		if !isBusy(err) || pause > beginPause || rest(ctx, pause) != nil {
			t.release()
			return nil, store.SwapResult{}, err
		}
	}
}

func newMark() []byte {
	mark := make([]byte, len(store.ID{}))
	_, _ = rand.Read(mark) // never fails
	return mark
}

// open sends the beginning of the transaction, and reads the current record.
func (t *transaction) open(ctx context.Context, hold bool) (store.SwapResult, error) {
	var err error
	if t.tx, err = t.conn.BeginTx(ctx, nil); err != nil {
		return store.SwapResult{}, err
	}
	steps := []step{{text: sqlIsolation}, {text: sqlBegin}, {text: sqlMark + `(?)`, args: t.guards, wait: noWait}}
	if hold {
		steps[2].text += `, (?)`
		steps = append(steps, step{text: sqlHold, args: []any{t.id[:]}, wait: noWait})
	}
	steps[2].text += orLock
	rows, err := t.query(ctx, t.store.in(t.tx), append(steps, step{text: sqlSave}, step{text: sqlGet + `(?)`, args: []any{t.id[:]}})...)
	if err != nil {
		return store.SwapResult{}, err
	}
	records, err := readRecords(rows)
	if err != nil || len(records) == 0 {
		return store.SwapResult{}, err
	}
	return store.SwapResult{Token: records[0].Token, Record: &records[0]}, nil
}

// seal refuses further statements of the handler and of the goroutines that it left
// behind, and returns what the transaction's statements have shown.
func (t *transaction) seal() (state txState, reading bool) {
	_ = t.conn.Raw(func(any) error {
		if t.session.tx != nil {
			t.session.tx.sealed = true
			state, reading = *t.session.tx, t.session.reading
		}
		return nil
	})
	return state, reading
}

// leave rolls uncommitted writes back and releases the connection.
func (t *transaction) leave() {
	t.seal()
	t.leaveTx()
	t.release()
}

// leaveTx ends the transaction, unless it has ended.
func (t *transaction) leaveTx() {
	if t.tx != nil {
		_ = t.tx.Rollback() // it may have ended
	}
	_ = t.conn.Raw(func(any) error {
		t.session.tx = nil
		if !t.session.IsValid() {
			return driver.ErrBadConn // database/sql closes the connection
		}
		return nil
	})
}

func (t *transaction) release() { t.conn.Close() }

// cut closes the connection, which ends a call that is running.
func (t *transaction) cut() {
	if t.session.net != nil {
		t.session.net.Close()
	}
}

// end ends the transaction as run has decided.
func (t *transaction) end(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	bound := time.AfterFunc(t.store.commitBound, t.cut)
	defer bound.Stop()
	ctx = withKind(ctx, closing)
	state, reading := t.seal()
	switch {
	case state.ended:
		return t.gone(ctx, state, failed)
	case state.dead != nil:
		return t.dead(ctx, state, failed)
	case reading:
		t.cut()
		return t.dead(ctx, state, errors.Join(failed, errInUse))
	case state.met != nil, isInterrupted(failed):
		return t.rollBack(ctx, state, instead(state.met, failed))
	case isConflict(failed), failed != nil && last == nil:
		return t.rollBack(ctx, state, withMark(failed))
	case last != nil && last.To.ID != t.id:
		return t.rollBack(ctx, state, fmt.Errorf("the last change is of record %s, not of %s", last.To.ID, t.id))
	case last != nil:
		if err := last.Check(maxOutcome); err != nil {
			return t.rollBack(ctx, state, fmt.Errorf("swap %w", err))
		}
	}
	return t.finish(ctx, state, last, failed)
}

// finish makes the last change, if there is one, and commits. Before a failure that is
// stored it undoes what the handler did: no goroutine of the handler can write any
// more.
func (t *transaction) finish(ctx context.Context, state txState, last *store.Change, failed error) (store.Verdict, error) {
	steps := []step{{text: sqlKeep}}
	if failed != nil {
		steps[0].text = sqlUndo
	}
	if last != nil {
		steps = append(steps, lastStep(last))
	}
	steps = append(steps, step{text: sqlUnmark + list(len(t.guards)), args: t.guards, must: int64(len(t.guards)), err: ErrEnded})
	reached, err := t.commit(ctx, t.store.in(t.tx), steps...)
	switch {
	case err == nil:
		t.over()
		return store.Committed, nil
	case isNoSavepoint(err), errors.Is(err, ErrEnded):
		return t.gone(ctx, state, failed)
	case errors.Is(err, store.ErrSuperseded):
		return store.NotCommitted, fmt.Errorf("record %s: %w", t.id, err)
	case reached == 0, codeOf(err) == 0 && !t.isLost(), isConflict(err), codeOf(err) == codeNotReady:
		return store.NotCommitted, fault("commit", withMark(err))
	default:
		return store.Unknown, fault("commit", err)
	}
}

// lastStep is a transaction's last change, which fails if the record has changed.
func lastStep(c *store.Change) step {
	text, args := statement(c)
	if (c.If == store.Token{}) {
		text += orNothing
	}
	return step{text: text, args: args, wait: brief, must: 1, err: store.ErrSuperseded}
}

// isLost reports whether the transaction's connection is lost.
func (t *transaction) isLost() (lost bool) {
	err := t.conn.Raw(func(any) error {
		lost = t.session.tx != nil && t.session.tx.lost
		return nil
	})
	return lost || err != nil
}

// over keeps that the transaction has ended.
func (t *transaction) over() {
	_ = t.conn.Raw(func(any) error {
		t.session.tx.over = true
		return nil
	})
}

// rollBack ends the transaction because of cause, without a COMMIT.
func (t *transaction) rollBack(ctx context.Context, state txState, cause error) (store.Verdict, error) {
	err := t.exec(ctx, t.store.in(t.tx), step{text: sqlKeep}, step{text: `ROLLBACK`})
	switch {
	case err == nil:
		t.over()
		return store.NotCommitted, cause
	case isNoSavepoint(err):
		return t.gone(ctx, state, cause)
	default:
		return t.dead(ctx, state, cause)
	}
}
