package sqlite_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// An idle worker and an idle sweeper block no writer: they find out without the
// write lock that there is nothing to do.
func TestIdleDequeueTakesNoLock(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	s.SetPatience(time.Hour)
	later := create("later", store.Pending, 1)
	later.To.Due = time.Hour
	mustApply(t, s, later)
	release := lockDatabase(t, db)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := store.Dequeue{Operation: later.To.Operation, Limit: 10, Owner: 7, Lease: time.Minute}
	if claimed, err := s.Dequeue(ctx, d); len(claimed) > 0 || err != nil {
		t.Errorf("Dequeue = %d records, %v, want none", len(claimed), err)
	}
	if gone, err := s.Purge(ctx, 10); gone > 0 || err != nil {
		t.Errorf("Purge = %d, %v, want none", gone, err)
	}
}

// A handler that dequeues while it holds the only connection gets no records.
func TestDequeueInAPoolOfOne(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.SetMaxOpenConns(1)
	s := sqlite.New(db, sqlite.Options{})
	waits, last := create("waits", store.Pending, 1), create("last", store.Succeeded, 1)
	mustApply(t, s, waits)
	d := store.Dequeue{Operation: waits.To.Operation, Limit: 10, Owner: 7, Lease: time.Minute}
	verdict, err := s.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, _ *sql.Tx, _ store.SwapResult) (*store.Change, error) {
		s.SetPatience(20 * time.Millisecond)
		defer s.SetPatience(time.Minute)
		if claimed, err := s.Dequeue(ctx, d); len(claimed) > 0 || err != nil {
			t.Errorf("Dequeue within a handler = %d records, %v, want none", len(claimed), err)
		}
		return &last, nil
	})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
	if claimed, err := s.Dequeue(t.Context(), d); len(claimed) != 1 || err != nil {
		t.Errorf("Dequeue afterwards = %d records, %v, want what waits", len(claimed), err)
	}
}
