package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// A batch that is a transaction by itself is sent without the driver's batches, as
// long as it has few different texts: each text is prepared once for each
// connection.
const textsAtMost = 100

// writtenAtMost limits the bytes that are written before the replies are read, so
// that they fit into buffers even if the server waits for its replies to be read.
const writtenAtMost = 16 << 10

// sendFirst makes the first round trip.
func (b *batchTx) sendFirst(ctx context.Context) error {
	ctx, conn := context.WithoutCancel(ctx), b.conn.Conn()
	return within(conn, b.bound(), func() error {
		if b.plain && b.store.quick && isFinalInsert(b.change) {
			if err := b.sendPrepared(ctx, newPreparedConn(conn)); !errors.Is(err, errForDriver) {
				return err
			}
		}
		return conn.SendBatch(ctx, b.build()).Close()
	})
}

// errForDriver means that the driver must send a batch, and report what is wrong
// with it.
var errForDriver = errors.New("semel/postgres: it is not sent like this")

// sendPrepared sends the batch, unless a statement cannot be prepared or encoded,
// or the server has lost its prepared statements.
func (b *batchTx) sendPrepared(ctx context.Context, of *preparedConn) error {
	if !b.buildPrepared(ctx, of) {
		return errForDriver
	}
	err := of.send(ctx, b)
	switch code := codeOf(err); {
	case code == codeNoStatement:
		of.forget()
		b.right, b.ours, b.hasRun = false, false, 0 // a new transaction begins
		return errForDriver
	case code == codeNotSupported, class(code) == "42":
		of.drop(ctx) // the table may have changed
	}
	return err
}

// row ignores rows, because no caller reads them.
func (*batchTx) row(int, [][]byte) {}

// done counts executed statements.
func (b *batchTx) done(n int, _ []byte) {
	if n == 0 {
		b.right, b.ours = true, true
		return
	}
	b.hasRun++
}

// buildPrepared builds the round trip, and returns false if the driver must send
// it.
func (b *batchTx) buildPrepared(ctx context.Context, of *preparedConn) bool {
	of.out.reset()
	if b.addChange(ctx, of) && b.addQueries(ctx, of) && len(of.out.bytes) <= writtenAtMost {
		return true
	}
	of.out, of.args = messages{}, pgx.ExtendedQueryBuilder{} // the buffer may be large
	return false
}

// addQueries adds the queries, unless they are too many.
func (b *batchTx) addQueries(ctx context.Context, of *preparedConn) bool {
	for _, q := range b.queries {
		d := of.known[q.SQL]
		if d == nil && len(of.known) >= textsAtMost || isRewritten(q) || len(of.out.bytes) > writtenAtMost {
			return false
		}
		d, err := of.prepare(ctx, q.SQL)
		if err != nil || of.args.Build(of.conn.TypeMap(), d, q.Arguments) != nil {
			return false
		}
		of.out.executeAs(d.Name, &of.args)
	}
	return true
}

// addChange adds the change, which also takes the right to the record.
func (b *batchTx) addChange(ctx context.Context, of *preparedConn) bool {
	text := b.tables.outright
	if b.hold {
		text = b.tables.outrightHeld
	}
	return of.add(ctx, text, func(r *encoder) {
		r.outright(b.change)
		if b.hold {
			r.int64(rightTo(b.change.To.ID))
		}
	}) == nil
}

// isRewritten reports whether the driver would send another text than the query's.
func isRewritten(q *pgx.QueuedQuery) bool {
	if len(q.Arguments) == 0 {
		return false
	}
	_, is := q.Arguments[0].(pgx.QueryRewriter)
	return is
}
