package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/semelgo/semel/store"
)

const (
	// getMany is the number of records that one statement reads. From getFew
	// records on, that is faster than single statements.
	getMany = 32
	getFew  = 4
)

// Get reads the last commit. In journal mode WAL it never waits for a writer; in
// others a record can be Busy. It reads 32 records at a time, so the results are
// not from one snapshot.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fault(ctx, "get", err)
	}
	all, err := s.statements(ctx)
	if err != nil {
		return nil, s.fault(ctx, "get", err)
	}
	answers := make([]store.SwapResult, len(ids))
	for done := 0; done < len(ids); {
		n, stmt, read := 1, all[verbGet], getOne
		if len(ids)-done >= getFew {
			n, stmt, read = min(getMany, len(ids)-done), all[verbGetMany], getSome
		}
		err := read(ctx, stmt, ids[done:done+n], answers[done:done+n])
		switch {
		case err == nil:
		case IsBusy(err) && ctx.Err() == nil:
			for i := range answers[done : done+n] {
				answers[done+i] = store.SwapResult{Busy: true}
			}
		default:
			return nil, s.fault(ctx, "get record "+ids[done].String(), err)
		}
		done += n
	}
	return answers, nil
}

func getOne(ctx context.Context, stmt *sql.Stmt, ids []store.ID, answers []store.SwapResult) (err error) {
	answers[0], err = standing(stmt.QueryRowContext(ctx, ids[0][:]))
	return err
}

// getSome reads up to getMany records. If there are fewer, it repeats the last ID,
// which costs nothing.
func getSome(ctx context.Context, stmt *sql.Stmt, ids []store.ID, answers []store.SwapResult) error {
	args := make([]any, getMany)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)][:]
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	records, err := readRecords(rows)
	if err != nil {
		return err
	}
	found := make(map[store.ID]*store.Record, len(records))
	for i := range records {
		found[records[i].ID] = &records[i]
	}
	for i, id := range ids {
		if r := found[id]; r != nil {
			answers[i] = store.SwapResult{Token: r.Token, Record: r}
		}
	}
	return nil
}

func standing(row scanner) (store.SwapResult, error) {
	r, err := readRecord(row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.SwapResult{}, nil
	case err != nil:
		return store.SwapResult{}, err
	}
	return store.SwapResult{Token: r.Token, Record: r}, nil
}

// get reads the current record for the transaction.
func (s *session) get(ctx context.Context, id store.ID) (store.SwapResult, error) {
	return standing(s.stmt(ctx, verbGet).QueryRowContext(context.WithoutCancel(ctx), id[:]))
}

// Scan reads from one snapshot. An index finds InDoubt and Failed records, and due
// records. Any other query reads the records in the order of their IDs until the
// page is full, even if few match.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	text, args := scanned(q)
	if text == "" {
		return nil, nil
	}
	var after []any
	if text == sqlScanDue { // the last column, by which the two lists were merged
		after = []any{new(any)}
	}
	var records []store.Record
	err := s.query(ctx, func(rows *sql.Rows) (err error) {
		records, err = readRecords(rows, after...)
		return err
	}, text, args...)
	if err != nil {
		return nil, s.fault(ctx, "scan", err)
	}
	return records, nil
}

// scanned returns the statement for q, and "" if nothing can match.
func scanned(q store.Query) (text string, args []any) {
	state, operation := int64(q.State), []byte(q.Operation)
	of := []any{len(operation), operation}
	page := []any{q.PageSize(), max(0, q.Skip)}
	switch {
	case !q.Due && (q.State == store.InDoubt || q.State == store.Failed):
		return sqlScanRare, slices.Concat([]any{state, q.After[:]}, of, page)
	case !q.Due:
		return sqlScan, slices.Concat([]any{q.After[:], state, state}, of, page)
	case q.State == store.Pending:
		return sqlScanWaits, slices.Concat(of, page)
	case q.State == store.InProgress:
		return sqlScanLeases, slices.Concat(of, page)
	case q.State == store.Absent:
		return sqlScanDue, slices.Concat(of, of, page)
	default: // other states have no Due
		return "", nil
	}
}

// readRecords reads all rows, and closes them.
func readRecords(rows *sql.Rows, after ...any) ([]store.Record, error) {
	defer rows.Close()
	var records []store.Record
	for rows.Next() {
		r, err := readRecord(rows, after...)
		if err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	return records, rows.Err()
}
