package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// InnoDB shows a commit to other sessions before the commit is on disk: it releases the
// locks first and flushes the log after that. A power loss between them takes back what
// other callers have read. So a call that shows a final state, or finds a change
// applied, soon after the record has changed, makes a small commit of its own first. It
// flushes the log, and with it everything that the call has read.

// flushed is the age from which a commit counts as on disk. A flush takes milliseconds;
// one that takes longer than this delays all commits of the server as long.
const flushed = time.Minute

// confirmOn returns when the records that a call has read are on disk. conn is one of
// the store's own connections, outside of a transaction.
func (s *Store) confirmOn(ctx context.Context, f *dialect, conn *sql.Conn, records []*store.Record) error {
	if !f.mayBeLost(records) {
		return nil
	}
	return s.flush(ctx, f, conn)
}

// confirm is confirmOn for a caller that has no connection.
func (s *Store) confirm(ctx context.Context, f *dialect, records []*store.Record) error {
	if !f.mayBeLost(records) {
		return nil
	}
	conn, err := s.lanes.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.flush(ctx, f, conn)
}

// mayBeLost reports whether a change of one of the records may not be on disk yet.
func (f *dialect) mayBeLost(records []*store.Record) bool {
	return f.flushesLate && slices.ContainsFunc(records, func(r *store.Record) bool { return r.Since < flushed })
}

// final returns the records of those results that show a final state.
func final(results ...store.SwapResult) []*store.Record {
	var records []*store.Record
	for _, r := range results {
		if r.Record != nil && r.Token.State.Final() {
			records = append(records, r.Record)
		}
	}
	return records
}

// flush commits a row and its removal.
func (s *Store) flush(ctx context.Context, f *dialect, conn *sql.Conn) error {
	mark := newMark()
	err := f.exec(ctx, s.in(conn), step{text: sqlBegin}, step{text: sqlMark + `(?)`, args: []any{mark}},
		step{text: sqlUnmark + `(?)`, args: []any{mark}}, step{text: `COMMIT`})
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // a transaction may be open
	}
	return err
}
