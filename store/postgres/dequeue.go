package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// beginQueue begins a transaction that claims. At a higher isolation level, which
// may be the session's default, a record that another call has just claimed would
// be an error instead of being skipped.
const beginQueue = `BEGIN ISOLATION LEVEL READ COMMITTED`

// Dequeue claims in one round trip, and waits for an earlier call with the same Owner
// that has not ended. It returns no records if that takes longer than a tenth of a
// second. It skips records whose rows are locked, and
// records to which a transaction of Atomic has the exclusive right. To check that,
// it takes the right for a moment itself, so that a concurrent Atomic of the record
// may be Busy.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := d.Check(maxBatch); err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("dequeue", err)
	}
	all, err := s.dequeue(ctx, t, d)
	if err != nil {
		return nil, s.fault("dequeue", withConflict(err))
	}
	return sortRanked(all), nil
}

func (s *Store) dequeue(ctx context.Context, t *tables, d store.Dequeue) ([]rankedRecord, error) {
	if d.Reread {
		return s.claimed(ctx, t, d)
	}
	c := dequeueCall{on: t, confirmed: s.replicated.Load(), Dequeue: d}
	if own := s.sessions.take(ctx); own.Conn != nil {
		defer own.Release()
		return c.send(ctx, connSender{own.Conn}, frame{})
	}
	return c.send(ctx, poolSender{s}, frame{before: []string{beginQueue, s.texts.queue}, after: []string{`COMMIT`}})
}

// claimed returns the claims of earlier calls.
func (s *Store) claimed(ctx context.Context, t *tables, d store.Dequeue) (all []rankedRecord, err error) {
	err = trip(ctx, poolSender{s}, frame{before: []string{s.texts.listed}}, func(b *pgx.Batch) {
		b.Queue(t.claimed, int64(d.Owner), []byte(d.Operation), s.replicated.Load()).Query(collectRanked(&all))
	})
	return all, err
}

// dequeueCall is a call of Dequeue that may claim.
type dequeueCall struct {
	store.Dequeue

	on        *tables
	confirmed bool // a standby must have the claims of an earlier call before they are returned again
}

// send claims with the driver's batches, in one transaction. It returns no records while
// an earlier call with the same Owner has not ended.
func (c *dequeueCall) send(ctx context.Context, in sender, f frame) (all []rankedRecord, err error) {
	alone := false // no other call with this Owner is open
	err = trip(ctx, in, f, func(b *pgx.Batch) {
		b.Queue(sqlDequeueOnce, int64(c.Owner)).Exec(func(pgconn.CommandTag) error { alone = true; return nil })
		b.Queue(c.on.dequeue, []byte(c.Operation), int64(c.Limit), int64(c.Owner), c.Lease.Microseconds(), c.confirmed).
			Query(collectRanked(&all))
	})
	if !alone && codeOf(err) == codeLockTimeout {
		return nil, nil
	}
	return all, err
}

// collectRanked returns a function that collects the records of a result.
func collectRanked(all *[]rankedRecord) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*all, err = pgx.CollectRows(rows, readWaited)
		return err
	}
}

// rankedRecord is a claimed record with its place in the order. The place is not
// known when claims are read again.
type rankedRecord struct {
	*store.Record

	place int64
}

func readWaited(row pgx.CollectableRow) (w rankedRecord, err error) {
	w.Record, err = readRecord(row, &w.place)
	return w, err
}

// sortRanked sorts the records by their places. The database returns them in any
// order.
func sortRanked(all []rankedRecord) []store.Record {
	slices.SortFunc(all, func(a, b rankedRecord) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.place, b.place), bytes.Compare(a.ID[:], b.ID[:]))
	})
	records := make([]store.Record, len(all))
	for i, w := range all {
		records[i] = *w.Record
	}
	return records
}
