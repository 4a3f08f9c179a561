package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A batch that is a transaction by itself goes past the driver's batches, like the
// statements of an Atomic, as long as its texts are few: each of them is prepared once
// for each connection, and stays so.
const textsAtMost = 100

// sendFirst makes the first trip.
func (b *batched) sendFirst(ctx context.Context) error {
	ctx, conn := context.WithoutCancel(ctx), b.conn.Conn()
	return within(conn, b.bound(), func() error {
		if b.plain && b.store.quick {
			if err := b.sendQuickly(ctx, pooledFor(conn)); !errors.Is(err, errForDriver) {
				return err
			}
		}
		return conn.SendBatch(ctx, b.pack()).Close()
	})
}

// errForDriver says that the driver has to send a batch, and to tell what is wrong with it.
var errForDriver = errors.New("semel/postgres: it is not sent like this")

// sendQuickly sends the batch unless it cannot be prepared or written, or the server
// has forgotten what was prepared.
func (b *batched) sendQuickly(ctx context.Context, of *pooled) error {
	send := b.packQuickly(ctx, of)
	if send == nil {
		return errForDriver
	}
	err := of.send(ctx, send, b.heard)
	switch codeOf(err) {
	case codeNoStatement:
		of.forget()
		b.right, b.ours, b.done = false, false, 0 // nothing holds of what was run
		return errForDriver
	case codeNotSupported:
		of.drop(ctx) // a table has changed
	}
	return err
}

// heard counts what was done.
func (b *batched) heard(n int, r *pgconn.ResultReader) {
	if _, err := r.Close(); err != nil {
		return // which is told by the whole as well
	}
	if n == 0 {
		b.right, b.ours = true, true
		return
	}
	b.done++
}

// packQuickly puts together what goes in the trip, nil if the driver has to.
func (b *batched) packQuickly(ctx context.Context, of *pooled) *pgconn.Batch {
	text, change := b.tables.first, said{write: func(r *raw) { r.change(b.change) }}
	if b.hold {
		text = b.tables.firstHeld
		change.write = func(r *raw) { r.change(b.change); r.int64(rightTo(b.change.To.ID)) }
	}
	change.text = text
	send, err := of.put(ctx, change)
	if err != nil {
		return nil
	}
	var values pgx.ExtendedQueryBuilder
	for _, q := range b.queries {
		d := of.known[q.SQL]
		if d == nil && len(of.known) >= textsAtMost || rewritten(q) {
			return nil
		}
		if d, err = of.prepare(ctx, q.SQL); err != nil {
			return nil
		}
		if err := values.Build(of.conn.TypeMap(), d, q.Arguments); err != nil {
			return nil
		}
		send.ExecStatement(d, values.ParamValues, values.ParamFormats, values.ResultFormats)
	}
	return send
}

// rewritten says that another text is sent instead of the query's.
func rewritten(q *pgx.QueuedQuery) bool {
	if len(q.Arguments) == 0 {
		return false
	}
	_, is := q.Arguments[0].(pgx.QueryRewriter)
	return is
}
