package postgres

import "context"

// leave rolls an open transaction back and releases everything.
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
		_ = t.say(ctx, `ROLLBACK`) // if it fails, the connection is not used again
	}
	t.release()
}

// release releases the connection, which is closed if its state is unknown, and the
// admission.
func (t *transaction) release() {
	if t.conn.Conn != nil {
		t.conn.Release()
	}
	t.store.gate.leave()
}
