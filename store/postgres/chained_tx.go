package postgres

import (
	"context"
	"time"
)

// If callers wait for a connection, the transaction that ends begins the next one
// in the same round trip, for the first of them. That saves one round trip of
// three, and the session's caches are warm. The reply to COMMIT may then wait for
// the first statement of the next transaction, so that statement waits for locks
// only for a moment.

const (
	// keptFor is how long transactions follow each other on a connection before it
	// is released, because other users of the pool may wait for it.
	keptFor = 250 * time.Millisecond
	// nextLook limits the wait of the first statement of the next transaction.
	nextLook = 50 * time.Millisecond
)

// commitNext commits, and begins a transaction of the same isolation level.
const commitNext = `COMMIT AND CHAIN`

// readyForNext prepares the statements that begin the next transaction, if callers
// wait.
func (t *transaction) readyForNext(ctx context.Context) error {
	if t.store.texts.openNext == "" || !t.store.gate.hasWaiters() {
		return nil
	}
	return t.of.ready(ctx, commitNext, t.store.texts.openNext, t.tables.existsNext(t.store.noScans.Load()))
}

// successor returns the transaction that begins where this one ends, or nil.
func (t *transaction) successor() *transaction {
	noScans := t.store.noScans.Load()
	if t.store.texts.openNext == "" || time.Since(t.taken) >= t.store.keptFor || //nolint:forbidigo // no instant of the protocol's
		!t.of.knows(commitNext, t.store.texts.openNext, t.tables.existsNext(noScans)) {
		return nil
	}
	if t.next = t.store.gate.promiseNext(t.store); t.next == nil {
		return nil
	}
	n := &transaction{store: t.store, tables: t.tables, id: *t.next.id, taken: t.taken}
	n.on(t.of)
	n.beginReply.noScans = noScans
	return n
}

// handOn gives the connection to the next transaction, which has begun. If its
// caller has given up, the transaction is rolled back.
func (t *transaction) handOn(ctx context.Context, n *transaction) {
	n.conn, t.conn = t.conn, nil
	promised := t.next
	t.left, t.next = true, nil
	if !t.store.gate.admitWith(promised, n) {
		n.leave(ctx)
	}
}
