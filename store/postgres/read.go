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
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, s.fault("get", err)
	}
	defer conn.Release()
	answers, err := get(ctx, conn.Conn, conn.on, s.texts.framesOf(conn)[first], lookup{ids: ids, confirmed: s.replicated.Load()})
	if err != nil && conn.own && conn.IsClosed() && ctx.Err() == nil { // it was lost, and another one may not be
		return s.Get(ctx, ids)
	}
	return answers, s.fault("get", err)
}

// lookup selects the records to read.
type lookup struct {
	ids []store.ID
	// confirmed: a standby must have a record before it is returned, if the record is final
	// or its token has one of the owners.
	confirmed bool
	owners    []int64
}

// get reads the current records, in the order of the lookup.
func get(ctx context.Context, in batchSender, t *tables, f frame, of lookup) ([]store.SwapResult, error) {
	text, args := sqlGetMany, []any{uuids(of.ids)}
	if of.confirmed {
		text, args = sqlGetConfirmed, append(args, of.owners)
	}
	var records []store.Record
	if err := send(ctx, in, f, func(b *pgx.Batch) { b.Queue(t.in(text), args...).Query(collectRecords(&records, 0)) }); err != nil {
		return nil, err
	}
	found := make(map[store.ID]store.SwapResult, len(records))
	for i := range records {
		found[records[i].ID] = store.SwapResult{Token: records[i].Token, Record: &records[i]}
	}
	answers := make([]store.SwapResult, len(of.ids))
	for i, id := range of.ids {
		answers[i] = found[id]
	}
	return answers, nil
}

// Scan reads from one snapshot. An index finds InDoubt and Failed records, and due
// records; and Pending and InProgress ones, unless they are so many that an index would
// not save anything. Any other query reads the records in the order of their IDs until the
// page is full, even if few match.
func (s *Store) Scan(ctx context.Context, q store.Query) (records []store.Record, err error) {
	text, args := scanned(q)
	if text == "" {
		return nil, nil
	}
	f := s.texts.keyed
	if q.Due || q.State == store.Pending || q.State == store.InProgress {
		f = s.texts.listed
	}
	if s.replicated.Load() && !q.Due && (q.State == store.Absent || q.State.Final()) {
		f.after = []string{sqlConfirm}
	}
	err = s.trip(ctx, "scan", f, func(b *pgx.Batch, t *tables) {
		b.Queue(t.in(text), args...).Query(collectRecords(&records, 0))
	})
	return records, err
}

// scanned returns the statement for q, and "" if nothing can match.
func scanned(q store.Query) (text string, args []any) {
	args = []any{[]byte(q.Operation), int64(q.PageSize()), int64(max(0, q.Skip))}
	if q.Due { // other states have no Due
		return map[store.State]string{store.Absent: sqlScanDue, store.Pending: sqlScanWaits, store.InProgress: sqlScanLeases}[q.State], args
	}
	return map[store.State]string{
		store.Absent: sqlScan, store.Pending: sqlScanPending, store.InProgress: sqlScanInProgress,
		store.InDoubt: sqlScanInDoubt, store.Succeeded: sqlScanSucceeded, store.Failed: sqlScanFailed,
	}[q.State], append(args, uuid(q.After))
}

// Counts reads all records, from one snapshot.
func (s *Store) Counts(ctx context.Context) (counts []store.Count, err error) {
	err = s.trip(ctx, "count records", frame{}, func(b *pgx.Batch, t *tables) {
		b.Queue(t.in(sqlCounts), t.in("semel_records"), t.timedPrefix()).Query(collect(&counts, func(row pgx.CollectableRow) (c store.Count, err error) {
			var operation []byte
			var state int16
			var oldest int64
			if err := row.Scan(&operation, &state, &c.Records, &c.Overdue, &c.Purgeable, &c.DeadLetters, &oldest); err != nil {
				return c, fmt.Errorf("read a row: %w", err)
			}
			c.Operation, c.State, c.Oldest = string(operation), store.State(state), micros(oldest)
			return c, nil
		}))
	})
	return counts, err
}
