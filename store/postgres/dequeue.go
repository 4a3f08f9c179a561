package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// beginQueue begins a transaction that claims. At a higher isolation level, which
// may be the session's default, a record that another call has just claimed would
// be an error instead of being skipped.
const beginQueue = `BEGIN ISOLATION LEVEL READ COMMITTED`

// dequeueTries is the number of tries of a Dequeue that cannot get a lock of the table or of an index
// within a tenth of a second. Under load, transactions wait for such a lock while the server extends
// the table.
const dequeueTries = 3

// Dequeue claims in one round trip, and waits for an earlier call with the same Owner
// that has not ended. It returns no records if that takes longer than a tenth of a
// second. It skips records whose rows are locked, and records to which a transaction of
// Atomic has the exclusive right. To check that, it takes the right for a moment itself,
// so that a concurrent Atomic of the record may be Busy.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) (records []store.Record, err error) {
	if err := d.Check(maxBatch); err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	confirmed := s.replicated.Load() // a standby must have the claims of an earlier call before they are returned again
	if d.Reread {
		err = s.trip(ctx, "dequeue", s.texts.keyed, func(b *pgx.Batch, t *tables) {
			b.Queue(t.in(sqlClaimed), int64(d.Owner), []byte(d.Operation), confirmed).Query(collectRecords(&records, 1))
		})
		return records, err
	}
	for tries := 1; ; tries++ {
		records, err := s.dequeue(ctx, d, confirmed)
		if codeOf(err) != codeLockTimeout || tries == dequeueTries {
			return records, s.fault("dequeue", withConflict(err))
		}
	}
}

// dequeue is one try. It returns no records if an earlier call with the same Owner has not ended.
func (s *Store) dequeue(ctx context.Context, d store.Dequeue, confirmed bool) (records []store.Record, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	f := frame{}
	if !conn.own {
		f = frame{before: append([]string{beginQueue}, s.texts.keyed.before...), after: []string{`COMMIT`}}
	}
	alone := false // no other call with this Owner is open
	err = send(ctx, conn.Conn, f, func(b *pgx.Batch) {
		b.Queue(sqlDequeueOnce, int64(d.Owner)).Exec(func(pgconn.CommandTag) error { alone = true; return nil })
		b.Queue(conn.on.in(sqlDequeue), []byte(d.Operation), int64(d.Limit), int64(d.Owner), d.Lease.Microseconds(), confirmed).
			Query(collectRecords(&records, 1))
	})
	if !alone && codeOf(err) == codeLockTimeout {
		return nil, nil
	}
	return records, err
}
