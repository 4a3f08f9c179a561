package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// guard protects the connection of a transaction against goroutines that the
// handler has left behind: after the end has begun, none of their calls reaches the
// connection. It also records what the handler's calls have shown.
type guard struct {
	mu       sync.Mutex
	over     bool // the handler's part has ended
	orphaned bool // a call was running then; its end releases the connection
	within   bool // a call is running; only it may use the connection and its results

	sent  sqlEffect // the possible effect of the handler's calls; not changed once over
	saved bool      // the savepoint exists; changed only within a call

	reading bool  // a result has not been read completely
	broken  error // the error that aborted the transaction, unless the handler has rolled back to a savepoint
	met     error // a conflict, also if the handler has rolled back since
	off     error // an interruption, also if the handler has rolled back since
}

// errInUse is pgx's error for a busy connection.
var errInUse = errors.New("semel/postgres: another call or result of the transaction is not over")

var errAborted = errors.New("semel/postgres: the transaction is aborted")

// enter begins a call of the handler, which no other call may overlap. It refuses a
// call that would no longer be in the transaction.
func (t *transaction) enter(ctx context.Context, may sqlEffect) error {
	if err := t.begins(may); err != nil {
		return err
	}
	if may == mayEndAndWrite {
		t.save(ctx)
	}
	return nil
}

func (t *transaction) begins(may sqlEffect) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return ErrEnded
	case t.within || t.reading:
		return errInUse
	case t.status() == outside:
		return ErrEnded
	case t.status() == inside:
		t.broken = nil
	}
	t.within, t.sent = true, max(t.sent, may)
	return nil
}

// save makes a savepoint before a call that may put another transaction in the place
// of this one. If the savepoint is there at the end, so is the transaction, even if it
// is aborted and refuses every other proof. Few handlers make such calls, so the others
// do not pay for it.
func (t *transaction) save(ctx context.Context) {
	if !t.saved && t.status() == inside {
		t.saved = t.say(ctx, `SAVEPOINT semel_run`) == nil
	}
}

// call makes a call that leaves no result open.
func (t *transaction) call(ctx context.Context, may sqlEffect, do func() error) error {
	if err := t.enter(ctx, may); err != nil {
		return err
	}
	return t.running(do)
}

// read makes a call on an open result.
func (t *transaction) read(do func() error) error {
	if err := t.resume(); err != nil {
		return err
	}
	return t.running(do)
}

func (t *transaction) running(do func() error) (err error) {
	defer func() { t.exit(err) }() // also when a source of rows panics
	return do()
}

// resume is enter for an open result.
func (t *transaction) resume() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return ErrEnded
	case t.within:
		return errInUse
	}
	t.within = true
	return nil
}

// exit ends a call. It keeps the error that aborted the transaction: if the handler
// ignores it, later errors do not show the cause.
func (t *transaction) exit(err error) {
	if err != nil && t.broken == nil && (t.status() == aborted || t.conn.IsClosed()) {
		t.broken = err
	}
	switch {
	case isConflict(err):
		t.met = err
	case isInterrupted(err):
		t.off = err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.within = false
	if t.orphaned {
		t.conn.Release()
	}
}

// seal refuses further calls of the handler, and reports whether none is running.
// Otherwise it breaks the connection and releases everything except the connection,
// because the running call may never end, for example one that waits for its rows.
func (t *transaction) seal() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.within && !t.left {
		t.left = true
		t.conn.PgConn().Conn().Close() // the running call gets the error
		t.orphaned = true
		t.conn.Hijack()
		t.store.gate.leave()
	}
	return !t.within
}

// isOff reports whether the transaction was interrupted. A handler that rolled back
// to a savepoint and succeeded does without the interrupted statement.
func (t *transaction) isOff(failed error) bool {
	return isInterrupted(failed) || t.off != nil && (failed != nil || t.status() == aborted)
}

// instead returns the error of a transaction with an error that is not the
// handler's answer, whatever the handler returned.
func instead(mark, met, failed error, is func(error) bool) error {
	if failed = cmp.Or(failed, met); is(failed) {
		return fmt.Errorf("%w: %w", mark, failed)
	}
	return fmt.Errorf("%w: %w (after %w)", mark, failed, met)
}

// cause returns the error that aborted the transaction.
func (t *transaction) cause() error { return cmp.Or(t.broken, errAborted) }

// rawConn returns the connection itself. Calls on it are neither seen nor guarded.
func (t *transaction) rawConn(tx pgx.Tx) *pgx.Conn {
	if t.exposeConn() != nil {
		return nil
	}
	return tx.Conn()
}

// exposeConn records that the handler has the connection itself, on which its calls may
// do anything. After the handler's part has ended, it is refused.
func (t *transaction) exposeConn() error {
	if t.begins(staysInside) == nil {
		t.save(context.Background()) // the handler passes no context here
		t.exit(nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return ErrEnded
	}
	t.sent = mayEndAndWrite
	return nil
}
