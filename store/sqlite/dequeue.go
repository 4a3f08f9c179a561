package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/semelgo/semel/store"
)

// Dequeue claims in one transaction, and begins none if no record is due. If
// another connection has a transaction open for longer than two seconds, every
// record counts as held by it, and Dequeue returns none. It fails, and has then
// claimed nothing, if ctx ends before the commit.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := d.Check(maxBatch); err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	if d.Reread {
		return s.claimed(ctx, d)
	}
	waits, err := s.any(ctx, verbAnyWaits, []byte(d.Operation))
	switch {
	case err != nil:
		return nil, s.fault(ctx, "dequeue", err)
	case !waits:
		return s.claimed(ctx, d)
	}
	w, err := s.begin(ctx, verbLock)
	switch {
	case errors.Is(err, ErrBusy):
		return nil, nil
	case err != nil:
		return nil, s.fault(ctx, "dequeue", err)
	}
	defer w.leave(ctx)
	records, err := w.claimed(ctx, d) // by an earlier call whose reply was lost
	claims := len(records) == 0
	if err == nil && claims {
		records, err = w.dequeue(ctx, d)
		claims = len(records) > 0
	}
	if err == nil {
		err = ctx.Err()
	}
	switch {
	case err != nil:
		return nil, s.fault(ctx, "dequeue", err)
	case !claims:
		return records, nil
	}
	verdict, err := w.commit(ctx)
	switch {
	case err == nil:
		return records, nil
	case verdict == store.NotCommitted && IsBusy(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("dequeue: commit: %w", err)
	}
}

// dequeue claims due records, the highest priority first.
func (s *session) dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	var records []store.Record
	for priority := store.MaxPriority; priority >= store.MinPriority && len(records) < d.Limit; priority-- {
		waiting, err := s.waiting(ctx, d.Operation, priority, d.Limit-len(records))
		if err != nil {
			return nil, err
		}
		for _, w := range waiting {
			args := append([]any{int64(d.Owner), d.Lease.Microseconds()}, w...)
			r, err := readRecord(s.stmt(ctx, verbClaim).QueryRowContext(context.WithoutCancel(ctx), args...))
			switch {
			case err == nil:
				records = append(records, *r)
			case !errors.Is(err, sql.ErrNoRows): // none is found if the clock was set back
				return nil, fmt.Errorf("claim: %w", err)
			}
		}
	}
	return records, nil
}

// waiting returns ID, attempt and owner of the records that have been due for
// longest.
func (s *session) waiting(ctx context.Context, operation string, priority, limit int) ([][]any, error) {
	rows, err := s.stmt(ctx, verbWaiting).QueryContext(context.WithoutCancel(ctx), []byte(operation), priority, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all [][]any
	for rows.Next() {
		var id []byte
		var attempt, owner int64
		if err := rows.Scan(&id, &attempt, &owner); err != nil {
			return nil, err
		}
		all = append(all, []any{id, attempt, owner})
	}
	return all, rows.Err()
}

// claimed reads the current records that calls with d's Owner have claimed.
func (s *Store) claimed(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	var records []store.Record
	err := s.query(ctx, func(rows *sql.Rows) (err error) {
		records, err = readRecords(rows)
		return err
	}, sqlClaimed, int64(d.Owner), []byte(d.Operation))
	if err != nil {
		return nil, s.fault(ctx, "dequeue again", err)
	}
	return inOrder(records), nil
}

// claimed is the method of Store, within the transaction.
func (s *session) claimed(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	rows, err := s.stmt(ctx, verbClaimed).QueryContext(context.WithoutCancel(ctx), int64(d.Owner), []byte(d.Operation))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	records, err := readRecords(rows)
	return inOrder(records), err
}

// inOrder sorts claimed records by priority. Their order by Due is no longer known.
func inOrder(records []store.Record) []store.Record {
	slices.SortFunc(records, func(a, b store.Record) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return records
}
