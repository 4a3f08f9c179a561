package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
)

// ErrSealed means that an attempt cannot commit, because a later attempt or [Rows.Settle]
// has sealed it. Its transaction was rolled back.
var ErrSealed = errors.New("semel/guard: sealed: this attempt cannot commit any more")

// InTx runs fn in a transaction of the domain's database that commits fn's writes and
// the guard row together. It is for the function of [semel.Do], with the operation of
// these Rows, and returns what the function must return.
//
// If the effect of the key was committed before, InTx rolls fn's writes back and returns
// the stored result. If the COMMIT gets no reply, InTx seals the attempt on another
// connection and so finds out. Every error after which the transaction was certainly not
// committed, and cannot be committed later, is marked [semel.NotCommitted], also fn's:
// mark it [semel.Final] to store it. Any other error says that the domain's database
// did not answer; the policy decides then.
//
// fn must not end tx, must make all its writes in tx, and must return every error of a
// statement. If the transaction ends earlier, by fn, or by MySQL after a deadlock or a
// statement like CREATE TABLE, or if the connection is lost while fn runs, InTx does not
// commit, and its error has no mark. The transaction is rolled back if ctx ends before the COMMIT. A transaction that
// the database aborts because of a conflict is not run again.
func (r *Rows[T, Tx]) InTx(ctx context.Context, fn func(ctx context.Context, tx Tx) (T, error)) (v T, err error) {
	a, ok := semel.AttemptOf(ctx)
	switch {
	case !ok:
		return v, notCommitted(&semel.FieldError{Field: "ctx", Reason: "does not belong to an attempt: call InTx in the function of semel.Do"})
	case a.Call().Operation() != r.operation:
		return v, notCommitted(&semel.FieldError{Field: "Rows", Reason: "are those of the operation " + r.operation + ", not of " + a.Call().Operation()})
	}
	id := r.idOf(a.Call().Scope().Bytes(), a.Call().Key())
	if a.Record().Tainted { // so that what is known about this attempt holds for all
		row, err := r.seal(ctx, id, a.Number())
		if err != nil || row.committed {
			return decodeFound[T](row, err)
		}
	}
	tx, c, err := r.db.begin(ctx)
	if err != nil {
		return v, notCommitted(fmt.Errorf("semel/guard: begin: %w", err))
	}
	t := &guardTx{c: c, open: true}
	defer t.rollback(ctx) // also on a panic
	if err := t.exec(ctx, "SAVEPOINT semel_guard_tx"); err != nil {
		return v, notCommitted(fmt.Errorf("semel/guard: begin: %w", err))
	}
	if v, err = fn(ctx, tx); err != nil {
		return v, t.undo(ctx, err)
	}
	if err := t.exec(ctx, "RELEASE SAVEPOINT semel_guard_tx"); err != nil {
		return v, fmt.Errorf("semel/guard: the transaction was ended while the function had it: %w", err)
	}
	return r.commit(ctx, id, a.Number(), t, v)
}

// commit writes the guard row of attempt n, and commits.
func (r *Rows[T, Tx]) commit(ctx context.Context, id string, n uint32, t *guardTx, v T) (T, error) {
	var none T
	result, err := json.Marshal(v)
	if err != nil {
		return none, notCommitted(fmt.Errorf("semel/guard: encode the result: %w", err))
	}
	if err := context.Cause(ctx); err != nil {
		return none, notCommitted(err)
	}
	err = r.write(ctx, t.c, id, guardRow{n, true, string(result)}, int64(n))
	if isUnique(err) {
		t.rollback(ctx) // before another connection is used
		return r.refused(ctx, id)
	}
	if err != nil {
		return none, notCommitted(fmt.Errorf("semel/guard: write the guard row: %w", err))
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	err = t.commit(bounded)
	cancel()
	if err == nil {
		return v, nil
	}
	row, unsealed := r.seal(ctx, id, n+1)
	switch {
	case unsealed != nil:
		return none, fmt.Errorf("semel/guard: commit: %w; and then: %w", err, unsealed)
	case row.committed:
		return decode[T](row)
	default:
		return none, notCommitted(fmt.Errorf("semel/guard: commit: %w", err))
	}
}

// refused returns the answer of the row that does not allow a commit.
func (r *Rows[T, Tx]) refused(ctx context.Context, id string) (v T, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	row, err := r.read(ctx, id)
	if err == nil && !row.committed {
		err = ErrSealed
	}
	return decodeFound[T](row, notCommitted(err))
}

// decodeFound returns err, or the result of a row that was committed before.
func decodeFound[T any](row guardRow, err error) (v T, _ error) {
	if err != nil {
		return v, err
	}
	return decode[T](row)
}

// guardTx is a transaction that is rolled back unless it was committed.
type guardTx struct {
	c    txConn
	open bool
}

func (t *guardTx) exec(ctx context.Context, text string) error {
	_, err := t.c.exec(ctx, text, nil)
	return err
}

// undo goes back to the savepoint, and returns the function's error. Only if that succeeds
// is the error marked: if the savepoint is gone, the function or a statement has ended the
// transaction, and without a connection the savepoint cannot be looked for. The function's
// error is then not wrapped, because its own marks rely on the rollback.
func (t *guardTx) undo(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if failed := t.exec(ctx, "ROLLBACK TO SAVEPOINT semel_guard_tx"); failed != nil {
		return fmt.Errorf("semel/guard: it is unknown what the transaction has committed: %w; the function returned: %v", failed, err) //nolint:errorlint // see above
	}
	return notCommitted(err)
}

func (t *guardTx) commit(ctx context.Context) error {
	t.open = false
	return t.c.commit(ctx)
}

func (t *guardTx) rollback(ctx context.Context) {
	if t.open {
		t.open = false
		rollback(ctx, t.c)
	}
}
