package postgres

import (
	"context"
	"time"
)

// Where callers wait for a connection, who ends its transaction begins the next one
// for the first of them in the same trip. That saves one trip of three, and the
// session is still warm. Who ends may be told of its COMMIT later by what the look
// takes, which therefore waits for a lock on the table for a moment only.

const (
	// keptFor is how long transactions follow each other so on a connection before it
	// is given back: others than this store may wait for it.
	keptFor = 250 * time.Millisecond
	// nextLook bounds how long the look that begins the next one waits.
	nextLook = 50 * time.Millisecond
)

// commitNext commits, and begins a transaction of the same isolation.
const commitNext = `COMMIT AND CHAIN`

// readyForNext prepares what begins the next transaction, where callers wait.
func (t *transaction) readyForNext(ctx context.Context) error {
	if t.store.texts.openNext == "" || !t.store.gate.hasWaiters() {
		return nil
	}
	return t.of.ready(ctx, commitNext, t.store.texts.openNext, t.tables.existsNext(t.store.noScans.Load()))
}

// successor is the transaction that begins where this one ends, nil if there is none.
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

// handOn gives the connection to the next transaction, which has begun. If nobody waits
// for it any more, it is rolled back.
func (t *transaction) handOn(ctx context.Context, n *transaction) {
	n.conn, t.conn = t.conn, nil
	promised := t.next
	t.left, t.next = true, nil
	if !t.store.gate.admitWith(promised, n) {
		n.leave(ctx)
	}
}
