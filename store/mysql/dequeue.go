package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// Dequeue claims records in one transaction. The Owner's row in semel_guard excludes
// other calls with the same Owner meanwhile.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := d.Check(maxBatch); err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	if d.Reread {
		return s.claimed(ctx, d)
	}
	var records []store.Record
	guard := ownerGuard(d)
	find := []step{{text: sqlMark + `(?)` + orLock, args: []any{guard}, wait: noWait}, waiting(d)}
	done, err := s.locked(ctx, find, func(db runner, ids []store.ID) (err error) {
		records, err = claimed(ctx, db, d) // by an earlier call whose reply was lost
		if err == nil && len(records) == 0 {
			records, err = claim(ctx, db, d, ids)
		}
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, sqlUnmark+`(?)`, guard)
		return err
	})
	switch {
	case err != nil:
		return nil, fault("dequeue", err)
	case !done:
		return nil, nil
	case len(records) == 0:
		return s.claimed(ctx, d)
	default:
		return records, nil // this call's own commit confirms the claims of an earlier one, too
	}
}

// ownerGuard returns the ID in semel_guard of d's Owner and Operation.
func ownerGuard(d store.Dequeue) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(d.Operation), d.Owner))
	return sum[:len(store.ID{})]
}

// claim claims records that are locked.
func claim(ctx context.Context, db runner, d store.Dequeue, ids []store.ID) ([]store.Record, error) {
	_, err := db.ExecContext(ctx, sqlClaim+list(len(ids)), append([]any{d.Owner, d.Lease.Microseconds()}, idArgs(ids)...)...)
	if err != nil {
		return nil, err
	}
	found, err := get(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	var records []store.Record
	for _, id := range ids {
		// Another one may be there if the clock was set back.
		if r := found[id]; r != nil && r.Owner == d.Owner && r.State == store.InProgress {
			records = append(records, *r)
		}
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
	records, err := claimed(ctx, s.own, d)
	if err == nil {
		err = s.confirmClaims(ctx, records)
	}
	if err != nil {
		return nil, fault("dequeue again", err)
	}
	return records, nil
}

// confirmClaims is confirm for the claims of an earlier call.
func (s *Store) confirmClaims(ctx context.Context, records []store.Record) error {
	f, err := s.dialect(ctx)
	if err != nil {
		return err
	}
	read := make([]*store.Record, len(records))
	for i := range records {
		read[i] = &records[i]
	}
	return s.confirm(ctx, f, read)
}

func claimed(ctx context.Context, db runner, d store.Dequeue) ([]store.Record, error) {
	rows, err := db.QueryContext(ctx, sqlClaimed, d.Owner, []byte(d.Operation))
	if err != nil {
		return nil, err
	}
	return readRecords(rows)
}

// locked finds and locks records, the last of the steps, and changes them in the same
// transaction. It commits nothing if it finds none. It returns false without an error if
// the transaction was rolled back because of other transactions, even at its COMMIT, as
// on Galera.
func (s *Store) locked(ctx context.Context, find []step, change func(db runner, ids []store.ID) error) (done bool, err error) {
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

func (f *dialect) locked(ctx context.Context, db runner, find []step, change func(db runner, ids []store.ID) error) error {
	rows, err := f.query(ctx, db, append([]step{{text: sqlBegin}}, find...)...)
	if err != nil {
		return err
	}
	ids, err := readIDs(rows)
	if err != nil {
		return err
	}
	end := `ROLLBACK`
	if len(ids) > 0 {
		if err := change(db, ids); err != nil {
			return err
		}
		end = `COMMIT`
	}
	_, err = db.ExecContext(ctx, end)
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
