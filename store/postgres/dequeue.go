package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// beginQueue begins what hands out. At a higher level, which may be the session's
// default, a record that another call has just claimed would be an error, not one
// to pass over.
const beginQueue = `BEGIN ISOLATION LEVEL READ COMMITTED`

// Dequeue claims in one round trip. It passes over the records that somebody has
// the right to within an Atomic, as well as those whose rows are locked. To find out
// it takes that right for a moment itself, so that an Atomic of the same record may
// be told Busy.
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
	return inTurn(all), nil
}

func (s *Store) dequeue(ctx context.Context, t *tables, d store.Dequeue) (all []waited, err error) {
	if d.Reread {
		return s.claimed(ctx, t, d)
	}
	if own := s.sessions.take(ctx); own != nil {
		defer s.sessions.give(own)
		return own.dequeue(ctx, t, d)
	}
	f := frame{before: []string{beginQueue, s.texts.queue}, after: []string{`COMMIT`}}
	return waiting(ctx, pooling{s}, f, t.dequeue, wanting(d)...)
}

// wanting are the parameters of what hands out.
func wanting(d store.Dequeue) []any {
	return []any{[]byte(d.Operation), int64(d.Limit), int64(d.Owner), d.Lease.Microseconds()}
}

// claimed are those that an earlier call has claimed.
func (s *Store) claimed(ctx context.Context, t *tables, d store.Dequeue) ([]waited, error) {
	return waiting(ctx, pooling{s}, frame{before: []string{s.texts.listed}}, t.claimed, int64(d.Owner), []byte(d.Operation))
}

// waiting asks by the driver's batches.
func waiting(ctx context.Context, in sender, f frame, text string, args ...any) (all []waited, err error) {
	err = trip(ctx, in, f, func(b *pgx.Batch) {
		b.Queue(text, args...).Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, readWaited)
			return err
		})
	})
	return all, err
}

// dequeue needs neither a transaction of its own nor settings: the session has them.
func (s *session) dequeue(ctx context.Context, t *tables, d store.Dequeue) (all []waited, err error) {
	if s.seen {
		return waiting(ctx, s, frame{}, t.dequeue, wanting(d)...)
	}
	err = s.ask(ctx, []prepared{{
		text: t.dequeue,
		write: func(r *raw) {
			r.text(d.Operation)
			r.int64(int64(d.Limit))
			r.int64(int64(d.Owner))
			r.int64(d.Lease.Microseconds())
		},
		read: func(row *rawRow) error {
			place, _ := row.int64()
			r, err := row.record()
			all = append(all, waited{r, place})
			return err
		},
	}})
	return all, err
}

// waited is a record and its place among those that waited, which is not known any
// more when it is asked for again.
type waited struct {
	*store.Record

	place int64
}

func readWaited(row pgx.CollectableRow) (w waited, err error) {
	w.Record, err = readRecord(row, &w.place)
	return w, err
}

// inTurn sorts the records as they wait. The database hands them out in any order.
func inTurn(all []waited) []store.Record {
	slices.SortFunc(all, func(a, b waited) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.place, b.place), bytes.Compare(a.ID[:], b.ID[:]))
	})
	records := make([]store.Record, len(all))
	for i, w := range all {
		records[i] = *w.Record
	}
	return records
}
