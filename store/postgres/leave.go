package postgres

import "context"

// leave rolls back what was not ended, and gives everything back.
func (t *transaction) leave(ctx context.Context) {
	if t.left {
		return
	}
	if t.tx == nil { // it has not begun
		t.left = true
		t.release()
		return
	}
	if !t.seal() {
		return
	}
	t.left = true
	if !t.session.IsClosed() && t.status() != outside {
		_ = t.say(ctx, `ROLLBACK`) // when it fails, the connection is not used again
	}
	t.release()
}

// release gives back the connection, which is closed if it is in an unknown
// state, and the right to run.
func (t *transaction) release() {
	if t.conn != nil {
		t.conn.Release()
	}
	if t.next == nil || !t.store.gate.letIn(t.next, nil) {
		t.store.gate.leave()
	}
}
