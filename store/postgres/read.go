package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// Get reads the last commit. It never waits for a writer, and no record is Busy. If
// commits wait for a standby, Get waits until one has the final records that it shows.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("get", err)
	}
	answers, err := s.get(ctx, t, ids)
	if err != nil {
		return nil, s.fault("get", err)
	}
	return answers, nil
}

// get reads over a connection of the sessions if one is free, and over the pool if
// that is lost.
func (s *Store) get(ctx context.Context, t *tables, ids []store.ID) ([]store.SwapResult, error) {
	of := lookup{ids: ids, confirmed: s.replicated.Load()}
	if own := s.sessions.take(ctx); own.Conn != nil {
		defer own.Release()
		answers, err := get(ctx, connSender{own.Conn}, t, frame{}, of)
		if err == nil || !own.IsClosed() || ctx.Err() != nil {
			return answers, err
		}
	}
	return get(ctx, poolSender{s}, t, frame{before: []string{s.texts.byKey}}, of)
}

// Scan reads from one snapshot. An index finds InDoubt and Failed records, and due
// records; and Pending and InProgress ones, unless they are so many that an index would
// not save anything. Any other query reads the records in the order of their IDs until the
// page is full, even if few match.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("scan", err)
	}
	text, args := t.scanned(q)
	if text == "" {
		return nil, nil
	}
	settings := s.texts.inOrder
	if q.Due || q.State == store.Pending || q.State == store.InProgress {
		settings = s.texts.listed
	}
	f := frame{before: []string{settings}}
	if s.replicated.Load() && !q.Due && (q.State == store.Absent || q.State.Final()) {
		f.after = []string{sqlConfirm}
	}
	var records []store.Record
	err = trip(ctx, poolSender{s}, f, func(b *pgx.Batch) {
		b.Queue(text, args...).Query(eachRecord(func(r *store.Record) { records = append(records, *r) }))
	})
	if err != nil {
		return nil, s.fault("scan", err)
	}
	return records, nil
}

// scanned returns the statement for q, and "" if nothing can match.
func (t *tables) scanned(q store.Query) (text string, args []any) {
	args = []any{[]byte(q.Operation), int64(q.PageSize()), int64(max(0, q.Skip))}
	switch {
	case !q.Due && (q.State == store.InDoubt || q.State == store.Failed):
		return t.scanRare, append([]any{uuid(q.After), stored(store.Token{State: q.State}).state}, args...)
	case !q.Due && q.State == store.Pending:
		return t.scanPending, append([]any{uuid(q.After)}, args...)
	case !q.Due && q.State == store.InProgress:
		return t.scanInProgress, append([]any{uuid(q.After)}, args...)
	case !q.Due:
		return t.scan, append([]any{uuid(q.After), stored(store.Token{State: q.State}).state}, args...)
	case q.State == store.Pending:
		return t.scanWaits, args
	case q.State == store.InProgress:
		return t.scanLeases, args
	case q.State == store.Absent:
		return t.scanDue, args
	default: // other states have no Due
		return "", nil
	}
}

// Counts reads all records, from one snapshot.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("count records", err)
	}
	counts, err := query(ctx, s, func(row pgx.CollectableRow) (store.Count, error) {
		var c store.Count
		var operation []byte
		var state int16
		var oldest int64
		if err := row.Scan(&operation, &state, &c.Records, &c.Overdue, &c.Purgeable, &c.DeadLetters, &oldest); err != nil {
			return c, fmt.Errorf("read a row: %w", err)
		}
		c.Operation, c.State, c.Oldest = string(operation), store.State(state), micros(oldest)
		return c, nil
	}, t.counts, t.in("semel_records"), t.timedPrefix())
	if err != nil {
		return nil, s.fault("count records", err)
	}
	return counts, nil
}
