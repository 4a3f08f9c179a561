package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// A batch that is a transaction by itself goes past the driver's batches, like the
// statements of an Atomic, as long as its texts are few: each of them is prepared once
// for each connection, and stays so.
const textsAtMost = 100

// writtenAtMost is how many bytes find room on the way to a server that does not read them
// because nobody reads yet what it has to answer.
const writtenAtMost = 16 << 10

// sendFirst makes the first trip.
func (b *batched) sendFirst(ctx context.Context) error {
	ctx, conn := context.WithoutCancel(ctx), b.conn.Conn()
	return within(conn, b.bound(), func() error {
		if b.plain && b.store.quick && isOutright(b.change) {
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
	if !b.packQuickly(ctx, of) {
		return errForDriver
	}
	err := of.send(ctx, b)
	switch code := codeOf(err); {
	case code == codeNoStatement:
		of.forget()
		b.right, b.ours, b.hasRun = false, false, 0 // nothing holds of what was run
		return errForDriver
	case code == codeNotSupported, class(code) == "42":
		of.drop(ctx) // a table may have changed
	}
	return err
}

// row passes over what statements return, which nobody asks for.
func (*batched) row(int, [][]byte) {}

// done counts what was done.
func (b *batched) done(n int, _ []byte) {
	if n == 0 {
		b.right, b.ours = true, true
		return
	}
	b.hasRun++
}

// packQuickly puts together what goes in the trip, and reports false if the driver has to.
func (b *batched) packQuickly(ctx context.Context, of *pooled) bool {
	of.out.reset()
	if b.addChange(ctx, of) && b.addQueries(ctx, of) && len(of.out.bytes) <= writtenAtMost {
		return true
	}
	of.out, of.args = messages{}, pgx.ExtendedQueryBuilder{} // it may be long
	return false
}

// addQueries adds what is to be run, as long as it is not too much.
func (b *batched) addQueries(ctx context.Context, of *pooled) bool {
	for _, q := range b.queries {
		d := of.known[q.SQL]
		if d == nil && len(of.known) >= textsAtMost || rewritten(q) || len(of.out.bytes) > writtenAtMost {
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

// addChange adds the change, which takes the right to the record, too.
func (b *batched) addChange(ctx context.Context, of *pooled) bool {
	text := b.tables.outright
	if b.hold {
		text = b.tables.outrightHeld
	}
	return of.add(ctx, text, func(r *raw) {
		r.outright(b.change)
		if b.hold {
			r.int64(rightTo(b.change.To.ID))
		}
	}) == nil
}

// rewritten says that another text is sent instead of the query's.
func rewritten(q *pgx.QueuedQuery) bool {
	if len(q.Arguments) == 0 {
		return false
	}
	_, is := q.Arguments[0].(pgx.QueryRewriter)
	return is
}
