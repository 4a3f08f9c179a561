package mysql

import (
	"context"

	"github.com/semelgo/semel/store"
)

// getMany is the number of records that one statement reads.
const getMany = 500

// Get reads the last commit. It never waits for a writer. It reads 500 records at a
// time, so the results are not from one snapshot.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	f, err := s.dialect(ctx)
	if err != nil {
		return nil, fault("get", err)
	}
	results := make([]store.SwapResult, len(ids))
	for done := 0; done < len(ids); done += getMany {
		part := ids[done:min(done+getMany, len(ids))]
		found, err := get(ctx, s.own, part)
		if err != nil {
			return nil, fault("get", err)
		}
		for i, id := range part {
			if r := found[id]; r != nil {
				results[done+i] = store.SwapResult{Token: r.Token, Record: r}
			}
		}
	}
	if err := s.confirm(ctx, f, final(results...)); err != nil {
		return nil, fault("get", err)
	}
	return results, nil
}

// get reads records.
func get(ctx context.Context, db runner, ids []store.ID) (map[store.ID]*store.Record, error) {
	rows, err := db.QueryContext(ctx, sqlGet+list(len(ids)), idArgs(ids)...)
	if err != nil {
		return nil, err
	}
	records, err := readRecords(rows)
	if err != nil {
		return nil, err
	}
	found := make(map[store.ID]*store.Record, len(records))
	for i := range records {
		found[records[i].ID] = &records[i]
	}
	return found, nil
}

func idArgs(ids []store.ID) []any {
	args := make([]any, len(ids))
	for i := range ids {
		args[i] = ids[i][:]
	}
	return args
}

// Scan reads from one snapshot. Indexes find due records, and InDoubt and Failed ones.
// Any other query reads the records in the order of their IDs until the page is full,
// even if few match.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	text, args, after := scanned(q)
	if text == "" {
		return nil, nil
	}
	rows, err := s.own.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fault("scan", err)
	}
	records, err := readRecords(rows, after...)
	if err != nil {
		return nil, fault("scan", err)
	}
	return records, nil
}

// scanned returns the statement for q, its arguments, and destinations of further
// columns. The text is empty if nothing can match.
func scanned(q store.Query) (text string, args, after []any) {
	page, skip := q.PageSize(), max(0, q.Skip)
	ofOperation, operation := "", []any(nil)
	if q.Operation != "" {
		ofOperation, operation = ` AND operation = ?`, []any{[]byte(q.Operation)}
	}
	const from = ` FROM semel_records FORCE INDEX `
	due := func(limit int) {
		text += `SELECT ` + columns + `, due` + from + `(semel_due) WHERE state = ? AND due <= ` + now + ofOperation + ` ORDER BY due LIMIT ?`
		args = append(append(args, operation...), limit)
	}
	switch {
	case q.Due && q.State == store.Absent:
		for i, state := range []store.State{store.Pending, store.InProgress} {
			text += []string{`(`, `) UNION ALL (`}[i]
			args = append(args, uint64(state))
			due(page + skip)
		}
		text += `) ORDER BY due LIMIT ? OFFSET ?`
		return text, append(args, page, skip), []any{new(any)}
	case q.Due && q.State != store.Pending && q.State != store.InProgress:
		return "", nil, nil // other states have no Due
	case q.Due:
		args = append(args, uint64(q.State))
		due(page)
		return text + ` OFFSET ?`, append(args, skip), []any{new(any)}
	case q.State == store.InDoubt || q.State == store.Failed:
		text = `SELECT ` + columns + from + `(semel_due) WHERE state = ? AND due IS NULL AND id > ?`
		args = []any{uint64(q.State), q.After[:]}
	case q.State != store.Absent:
		text = `SELECT ` + columns + from + `(PRIMARY) WHERE state = ? AND id > ?`
		args = []any{uint64(q.State), q.After[:]}
	default:
		text = `SELECT ` + columns + from + `(PRIMARY) WHERE id > ?`
		args = []any{q.After[:]}
	}
	return text + ofOperation + ` ORDER BY id LIMIT ? OFFSET ?`, append(append(args, operation...), page, skip), nil
}

// Counts reads every record, from one snapshot. It blocks no writer.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	rows, err := s.own.QueryContext(ctx, sqlCounts)
	if err != nil {
		return nil, fault("count records", err)
	}
	defer rows.Close()
	var counts []store.Count
	for rows.Next() {
		var c store.Count
		var oldest int64
		if err := rows.Scan(&c.Operation, &c.State, &c.Records, &c.Overdue, &c.Purgeable, &c.DeadLetters, &oldest); err != nil {
			return nil, fault("count records", err)
		}
		c.Oldest = micros(oldest)
		counts = append(counts, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fault("count records", err)
	}
	return counts, nil
}
