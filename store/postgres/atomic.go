package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// Atomic begins, takes the right and reads what stands in one round trip; makes
// the last change and commits in another, which is given ten seconds. The right
// is an advisory lock on the last eight bytes of the ID, for the transaction.
// If somebody else has it, run is told Busy, with a nil transaction. At most all
// but one of the pool's connections are in transactions of Atomic; who comes
// later waits as long as ctx lasts.
//
// The transaction that run is given is not to be committed or rolled back, which
// is refused with [ErrEnded]; its Begin gives savepoints. When run has ended it
// all the same, as SQL, the error is ErrEnded and store.ErrApart, and the verdict
// says what was found out, for which the server is given ten seconds; the change is
// not made. When run passes over an error that aborted the transaction, nothing is
// committed, and that error is told. A transaction in which PostgreSQL gave up a
// statement in favour of others fails with store.ErrConflict, whatever run made of
// that. One whose connection was lost, or in which a statement was broken off, by a
// timeout for a lock or of a statement, a cancellation, or because the server shut
// down or ran out of something, fails with store.ErrBroken; only a run that went back
// to a savepoint before that statement, and had success, has its success.
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx pgx.Tx, stands store.Standing) (*store.Change, error),
) (store.Verdict, error) {
	if !hold && s.level != pgx.ReadCommitted {
		return store.NotCommitted, fmt.Errorf("begin: %w", ErrIsolation)
	}
	t, err := s.begin(ctx, id, hold)
	if err != nil {
		return store.NotCommitted, fault("begin", withConflict(err))
	}
	defer t.leave(ctx) // also when run panics or ends its goroutine
	if t.stands.Busy {
		t.leave(ctx)
		return tellBusy(ctx, run)
	}
	last, err := run(ctx, &handedTx{watched{t.tx, t}}, t.stands)
	return t.end(ctx, last, err)
}

func tellBusy(ctx context.Context,
	run func(ctx context.Context, tx pgx.Tx, stands store.Standing) (*store.Change, error),
) (store.Verdict, error) {
	last, err := run(ctx, nil, store.Standing{Busy: true})
	if err == nil || last != nil {
		err = ErrBusy
	}
	return store.NotCommitted, err
}

func (s *Store) begin(ctx context.Context, id store.ID, hold bool) (*transaction, error) {
	on, err := s.tables(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t := &transaction{store: s, tables: on, id: id}
	if t.conn, err = s.pool.Acquire(ctx); err != nil {
		t.leave(ctx)
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	if err := t.open(ctx, hold); err != nil {
		t.leave(ctx)
		return nil, err
	}
	return t, nil
}

// open begins the transaction and reads what stands. A number for the
// transaction is taken at once, to find out by it what became of it if somebody
// else ends it.
func (t *transaction) open(ctx context.Context, hold bool) error {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.level})
	text, args := t.store.texts.open, []any(nil)
	if hold {
		text, args = t.store.texts.openHeld, []any{rightTo(t.id)}
	}
	b.Queue(text, args...).Query(t.readNumber)
	b.Queue(t.tables.look, uuid(t.id)).Query(t.readStands)
	t.session = t.conn.Conn()
	results := t.session.SendBatch(ctx, b)
	t.wire = t.session.PgConn().Conn()
	t.tx = results.Tx()
	return results.Close()
}

// rightTo is the number that stands for the right to a record.
func rightTo(id store.ID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// readStands reads what stands, which is nulls where nothing does. The first column
// is a setting that was given back.
func (t *transaction) readStands(rows pgx.Rows) error {
	for rows.Next() {
		if rows.RawValues()[1] == nil {
			continue
		}
		r, err := readRecord(rows, nil)
		if err != nil {
			return err
		}
		t.stands.Token, t.stands.Record = r.Token, r
	}
	return rows.Err()
}

// readNumber reads the transaction's number, which is null if somebody else has
// the right to the record. The other columns are the settings that were made.
func (t *transaction) readNumber(rows pgx.Rows) error {
	for rows.Next() {
		into := make([]any, len(rows.FieldDescriptions()))
		var number pgtype.Text
		into[0] = &number
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read the transaction's number: %w", err)
		}
		t.number, t.stands.Busy = number.String, !number.Valid
	}
	return rows.Err()
}

// errGone says that this is not the transaction that was begun.
var errGone = errors.New("semel/postgres: it is another transaction")

// errLost says that the connection was lost before anything was committed.
var errLost = errors.New("semel/postgres: the connection was lost within the transaction")
