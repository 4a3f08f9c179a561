package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// use is what guards the connection of a transaction against goroutines that the
// handler has left behind: from the moment its end begins, no call of theirs
// reaches the connection. It also keeps what was seen of the handler's calls.
type guard struct {
	mu     sync.Mutex
	over   bool // the handler's part has ended
	within bool // a call is under way, and alone may use the connection and what is read of it

	sent    sqlEffect // how far what the handler has sent may go
	exposed bool      // the handler has the connection itself
	saved   bool      // the savepoint was made, only changed within a call

	reading bool  // a result has not been read to its end
	broken  error // what aborted the transaction, if the handler has not gone back to a savepoint
	met     error // that others were in the way, also if the handler has gone back since
	off     error // that a statement was broken off, likewise
}

// errInUse says what pgx calls a busy connection.
var errInUse = errors.New("semel/postgres: another call or result of the transaction is not over")

// enter begins a call of the handler's, which nobody else's may meet. It refuses
// what would not be in the transaction any more.
func (t *transaction) enter(ctx context.Context, may sqlEffect) error {
	if err := t.begins(may); err != nil {
		return err
	}
	if may == reachBeyond {
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

// resume is enter for a result that is open.
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

// exit ends a call. It remembers the error that aborted the transaction: a handler
// that passes over it would see only what came of it later.
func (t *transaction) exit(err error) {
	if err != nil && t.broken == nil && (t.status() == aborted || t.session.IsClosed()) {
		t.broken = err
	}
	switch {
	case isConflict(err):
		t.met = err
	case isInterrupted(err):
		t.off = err
	}
	t.mu.Lock()
	t.within = false
	t.mu.Unlock()
}

// seal lets no further call of the handler's begin, and reports whether none is
// under way. Otherwise it breaks the connection and gives everything back, except
// the connection: that call may go on for ever, as one that waits for its rows.
func (t *transaction) seal() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.within && !t.left {
		t.left = true
		t.wire.Close() // that call will tell
		t.conn.Hijack()
		t.store.gate.leave()
	}
	return !t.within
}

// handed tells what the handler had of the connection.
func (t *transaction) handed() (exposed bool, sent sqlEffect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exposed, t.sent
}

// mayHaveEnded says whether what the handler did may have ended the transaction.
func (t *transaction) handlerMayHaveEnded() bool {
	exposed, sent := t.handed()
	return exposed || sent != reachInside
}

// proven says that it has not.
func (t *transaction) proven() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exposed, t.sent = false, reachInside
	t.of = nil // the handler may have dropped what was prepared
}

// isOff says that the transaction was broken off. A handler that went back to a
// savepoint and had success all the same has chosen to do without.
func (t *transaction) isOff(failed error) bool {
	return isInterrupted(failed) || t.off != nil && (failed != nil || t.status() == aborted)
}

// instead is what is told of a transaction that met what is nobody's answer,
// whatever the handler made of that.
func instead(mark, met, failed error, is func(error) bool) error {
	switch {
	case failed == nil:
		return fmt.Errorf("%w: %w", mark, met)
	case is(failed):
		return fmt.Errorf("%w: %w", mark, failed)
	default:
		return fmt.Errorf("%w: %w (after %w)", mark, failed, met)
	}
}

// cause returns what aborted the transaction.
func (t *transaction) cause() error {
	if t.broken == nil {
		return errors.New("semel/postgres: the transaction is aborted")
	}
	return t.broken
}

// raw gives the connection itself. What is done by it is not seen, nor guarded.
func (t *transaction) rawConn(tx pgx.Tx) *pgx.Conn {
	if t.exposeConn() != nil {
		return nil
	}
	return tx.Conn()
}

// expose says that the handler has the connection itself, in another form.
// A handler cannot have it any more when its part has ended.
func (t *transaction) exposeConn() error {
	if t.begins(reachInside) == nil {
		t.save(context.Background()) // the handler has given none
		t.exit(nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exposed = true
	if t.over {
		return ErrEnded
	}
	return nil
}
