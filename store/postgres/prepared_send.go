package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// add puts a statement of the store's behind those that go in the next trip. What is not
// prepared is prepared by a trip of its own before that.
func (p *preparedConn) add(ctx context.Context, text string, write func(r *encoder)) error {
	d, err := p.prepare(ctx, text)
	if err == nil {
		p.out.execute(d.Name, write)
	}
	return err
}

// keptByEach is how much room a connection keeps for its next trip: there may be many.
const keptByEach = 64 << 10

// nothing writes the parameters of a statement that has none.
func noArgs(*encoder) {}

// heard is told what the server says of the statements of a trip, by their number.
type replyHandler interface {
	row(n int, columns [][]byte)
	done(n int, tag []byte)
}

// send makes the trip. With an error, what was not done before it is not done. Like a
// session's, it writes all before it reads, so what is answered until all is written
// must find room on the way. It is the connection's deadline that bounds it: ctx is not to
// end, because the driver would watch it for each message.
func (p *preparedConn) send(ctx context.Context, to replyHandler) error {
	p.out.sync()
	_, err := p.conn.PgConn().Conn().Write(p.out.bytes)
	if cap(p.out.bytes) > keptByEach {
		p.out.bytes = nil
	}
	if err != nil {
		p.lose(ctx)
		return fmt.Errorf("send: %w", err)
	}
	return p.hear(ctx, to)
}

// sendAsLongAs is send that is broken off when ctx ends.
func (p *preparedConn) sendAsLongAs(ctx context.Context, to replyHandler) error {
	wire := p.conn.PgConn().Conn()
	stop := context.AfterFunc(ctx, func() { _ = wire.SetDeadline(time.Unix(1, 0)) })
	err := p.send(context.WithoutCancel(ctx), to)
	if stop() {
		return err
	}
	p.lose(context.WithoutCancel(ctx)) // the deadline of now may be set after the next trip's
	return errors.Join(ctx.Err(), err)
}

// hear reads the answers, up to the server's word that it is ready for more. It leaves
// it to the driver to know where the connection is.
func (p *preparedConn) hear(ctx context.Context, to replyHandler) (failed error) {
	heard := false
	defer func() {
		if !heard { // also when a callback of the pool's has panicked: there is more to read
			p.lose(ctx)
		}
	}()
	for n := 0; ; {
		said, err := p.conn.PgConn().ReceiveMessage(ctx)
		if err != nil {
			if failed != nil {
				return failed // the server's last word
			}
			return fmt.Errorf("receive: %w", err)
		}
		switch said := said.(type) {
		case *pgproto3.DataRow:
			to.row(n, said.Values)
		case *pgproto3.CommandComplete:
			to.done(n, said.CommandTag)
			n++
		case *pgproto3.EmptyQueryResponse:
			to.done(n, nil)
			n++
		case *pgproto3.ErrorResponse:
			if failed == nil {
				failed = pgconn.ErrorResponseToPgError(said)
			}
		case *pgproto3.ReadyForQuery:
			if failed == nil && n < p.out.asked {
				return errOutOfSync
			}
			heard = true
			return failed
		}
	}
}

// errOutOfSync means that the connection has the reply to another request, whose
// caller did not read it. The reply to this request would follow.
var errOutOfSync = errors.New("semel/postgres: an answer to something else was on the connection")

// lose breaks the connection in the middle of a round trip, so that it is not used
// again. The driver then asks the server to cancel the statement.
func (p *preparedConn) lose(ctx context.Context) {
	_ = p.conn.PgConn().Conn().Close()
	for ctx = context.WithoutCancel(ctx); !p.conn.IsClosed(); {
		p.passOver(ctx)
	}
}

// passOver reads what has arrived, also if a callback of the pool panics.
func (p *preparedConn) passOver(ctx context.Context) {
	defer func() { _ = recover() }() // one panic is on its way already
	_, _ = p.conn.PgConn().ReceiveMessage(ctx)
}
