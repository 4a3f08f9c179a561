package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// writer is a transaction with the write lock, and its connection. A commit or
// leave releases both.
type writer struct {
	session

	store *Store
	conn  *sql.Conn
	over  bool // no transaction is open
	left  bool // everything is released, or COMMIT will release it
}

// begin waits for the process's right to write, for a connection, and for the
// database's lock, which the first statement takes. It gives up with ErrBusy.
func (s *Store) begin(ctx context.Context, first verb, args ...any) (*writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, err := s.statements(ctx)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	select {
	case s.gate <- struct{}{}:
	default:
		select {
		case s.gate <- struct{}{}:
		case <-wait.Done():
			return nil, cmp.Or(ctx.Err(), ErrBusy)
		}
	}
	w := &writer{store: s, session: session{all: all}}
	err = w.open(wait, first, args)
	if err == nil && ctx.Err() == nil {
		return w, nil
	}
	if err == nil {
		w.leave(ctx)
		return nil, ctx.Err()
	}
	w.release()
	if errors.Is(err, wait.Err()) {
		err = cmp.Or(ctx.Err(), ErrBusy)
	}
	return nil, err
}

func (w *writer) open(ctx context.Context, first verb, args []any) error {
	var err error
	if w.conn, err = w.store.db.Conn(ctx); err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	return w.lockAgain(ctx, first, args...)
}

// lockAgain tries to take the write lock until ctx ends. It keeps a lock that it
// got after the end of ctx: the machine was slow, and no other connection had the
// lock.
func (w *writer) lockAgain(ctx context.Context, first verb, args ...any) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := w.lock(ctx, first, args)
		if err == nil || !IsBusy(err) {
			return err
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// lock begins the transaction with a writing statement. The end of ctx does not
// interrupt it.
func (w *writer) lock(ctx context.Context, first verb, args []any) error {
	tx, err := w.conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	w.session, w.over = session{tx: tx, all: w.all}, false
	if _, err := w.exec(ctx, first, args...); err != nil {
		_ = w.undo(ctx)
		return fmt.Errorf("take the write lock: %w", err)
	}
	return nil
}

// undo rolls back. Without an error, nothing was committed.
func (w *writer) undo(ctx context.Context) error {
	w.over = true
	err := w.tx.Rollback()
	if err != nil {
		w.clear(ctx)
	}
	return err
}

// clear ensures that the connection is in no transaction, whichever statement has
// ended it. It reports whether that is certain.
func (w *writer) clear(ctx context.Context) bool {
	_, err := w.conn.ExecContext(context.WithoutCancel(ctx), rollBack)
	if err == nil || codeOf(err)&primary == codeError { // there is no transaction
		return true
	}
	w.discard()
	return false
}

// discard closes a connection in an unknown state.
func (w *writer) discard() {
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
}

// commit returns the verdict after COMMIT, or Unknown after its time limit. COMMIT
// then goes on, and keeps the right to write until it has ended.
func (w *writer) commit(ctx context.Context) (store.Verdict, error) {
	type answer struct {
		verdict store.Verdict
		err     error
	}
	w.over, w.left = true, true
	done := make(chan answer, 1)
	go func() {
		growStack()
		verdict, err := w.finish(ctx)
		w.release()
		done <- answer{verdict, err}
	}()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.store.commitBound)
	defer cancel()
	select {
	case a := <-done:
		return a.verdict, a.err
	case <-wait.Done():
		return store.Unknown, fmt.Errorf("no answer to COMMIT: %w", wait.Err())
	}
}

func (w *writer) finish(ctx context.Context) (store.Verdict, error) {
	err := w.tx.Commit()
	if err == nil {
		return store.Committed, nil
	}
	if cleared := w.clear(ctx); cleared && leavesOpen(err) {
		return store.NotCommitted, err
	}
	return store.Unknown, err
}

// leave rolls uncommitted writes back, also after a panic.
func (w *writer) leave(ctx context.Context) {
	if w.left {
		return
	}
	w.left = true
	if !w.over {
		_ = w.undo(ctx) // no caller is left for the error
	}
	w.release()
}

// release releases the connection and the process's right to write.
func (w *writer) release() {
	if w.conn != nil {
		w.conn.Close() // it goes back to the pool, or was discarded
	}
	<-w.store.gate
}
