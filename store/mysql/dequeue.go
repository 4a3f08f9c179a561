package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// Dequeue claims records in one transaction.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := d.Check(maxBatch); err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	if d.Reread {
		return s.claimed(ctx, d)
	}
	var records []store.Record
	done, err := s.locked(ctx, waiting(d), func(db runner, ids []store.ID) error {
		_, err := db.ExecContext(ctx, sqlClaim+list(len(ids)), append([]any{d.Owner, d.Lease.Microseconds()}, idArgs(ids)...)...)
		if err != nil {
			return err
		}
		found, err := get(ctx, db, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			// Another one may be there if the clock was set back.
			if r := found[id]; r != nil && r.Owner == d.Owner && r.State == store.InProgress {
				records = append(records, *r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fault("dequeue", err)
	}
	if !done {
		return nil, nil
	}
	return records, nil
}

// waiting finds and locks due records, the highest priority first.
func waiting(d store.Dequeue) step {
	var parts []string
	st := step{wait: skips}
	for priority := store.MaxPriority; priority >= store.MinPriority; priority-- {
		parts = append(parts, sqlWaiting)
		st.args = append(st.args, []byte(d.Operation), priority, d.Limit)
	}
	st.text = strings.Join(parts, "\nUNION ALL ") + ` ORDER BY priority DESC, due LIMIT ?`
	st.args = append(st.args, d.Limit)
	return st
}

// claimed reads the current records that calls with d's Owner have claimed.
func (s *Store) claimed(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	rows, err := s.own.QueryContext(ctx, sqlClaimed, d.Owner, []byte(d.Operation))
	if err != nil {
		return nil, fault("dequeue again", err)
	}
	records, err := readRecords(rows)
	if err != nil {
		return nil, fault("dequeue again", err)
	}
	return records, nil
}

// locked finds and locks records, and changes them in the same transaction. It returns
// false without an error if that was rolled back because of other transactions, even at
// its COMMIT, as on Galera.
func (s *Store) locked(ctx context.Context, find step, change func(db runner, ids []store.ID) error) (done bool, err error) {
	f, err := s.dialect(ctx)
	if err != nil {
		return false, err
	}
	conn, err := s.lanes.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err = f.locked(ctx, s.in(conn), find, change); err == nil {
		return true, nil
	}
	if codeOf(err) != 0 || ctx.Err() != nil {
		if failed := rollBack(ctx, conn); failed != nil {
			return false, errors.Join(err, failed)
		}
	}
	if isBusy(err) {
		return false, nil
	}
	return false, err
}

func (f *dialect) locked(ctx context.Context, db runner, find step, change func(db runner, ids []store.ID) error) error {
	rows, err := f.query(ctx, db, step{text: sqlBegin}, find)
	if err != nil {
		return err
	}
	ids, err := readIDs(rows)
	if err == nil && len(ids) > 0 {
		err = change(db, ids)
	}
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `COMMIT`)
	return err
}

// ids returns the IDs that a statement finds.
func (s *Store) ids(ctx context.Context, text string, args ...any) ([]store.ID, error) {
	rows, err := s.own.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return readIDs(rows)
}

// readIDs reads the first column of all rows.
func readIDs(rows *sql.Rows) ([]store.ID, error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var id []byte
	dest := []any{&id}
	for range columns[1:] {
		dest = append(dest, new(any))
	}
	var ids []store.ID
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		ids = append(ids, store.ID(id))
	}
	return ids, rows.Err()
}
