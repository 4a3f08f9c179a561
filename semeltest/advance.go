package semeltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// Advance lets d pass for all records of s: leases, the due times of tasks and retries, and
// retentions end d earlier. It changes the records and no clock, so it works over every
// store, and s may be another store over the same database as the engine's. Use a
// database that only this test uses.
//
// A leader that is running does not notice: as after a pause of its process, it may
// continue until another caller takes over. What is expired can be taken over or purged at
// once, but nothing is purged before [admin.Purge] or a worker does that.
//
// Some times do not change: the age of a record, by which one-time tokens expire and
// callers are told when to retry; times in keys, which semel.Options.Clock moves; the
// cache of an engine; and events of an outbox. Over the memory store, memory.Options.Now
// moves the ages too.
//
// Records that others change while Advance runs may keep their times. It fails the test if
// the store does not answer, or if an open transaction holds a record.
//
// [admin.Purge]: https://pkg.go.dev/github.com/semelgo/semel/admin#Purge
func Advance(t testing.TB, s store.Store, d time.Duration) {
	t.Helper()
	if d < 0 {
		t.Fatalf("semeltest: Advance by %v: time does not go back", d)
	}
	caps, err := s.Capabilities(t.Context())
	if err != nil {
		t.Fatalf("semeltest: Advance: read the store's capabilities: %v", err)
	}
	q := store.Query{Limit: min(caps.MaxBatch, store.MaxLimit)}
	for {
		page, err := s.Scan(t.Context(), q)
		if err != nil {
			t.Fatalf("semeltest: Advance: list records: %v", err)
		}
		if err := moveTimes(t.Context(), s, page, d); err != nil {
			t.Fatalf("semeltest: Advance: %v", err)
		}
		if len(page) < q.Limit {
			return
		}
		q.After = page[len(page)-1].ID
	}
}

// moveTimes writes the times of records again, by d earlier. A change that keeps the token
// changes the times only.
func moveTimes(ctx context.Context, s store.Store, records []store.Record, d time.Duration) error {
	var changes []store.Change
	for _, r := range records {
		if r.State == store.InDoubt || r.State.Final() && r.Expire == 0 {
			continue // has no times
		}
		to := r
		to.Input, to.Outcome = nil, nil
		to.Due -= d
		if to.Expire != 0 {
			if to.Expire -= d; to.Expire == 0 {
				to.Expire = -1 // zero means never
			}
		}
		changes = append(changes, store.Change{If: r.Token, To: to})
	}
	if len(changes) == 0 {
		return nil
	}
	results, err := s.Swap(ctx, changes)
	if err != nil {
		return fmt.Errorf("move the times of records: %w", err)
	}
	for i, result := range results {
		if result.Busy {
			return fmt.Errorf("move the times of record %s: an open transaction holds it", changes[i].To.ID)
		}
		if result.Err != nil {
			return fmt.Errorf("move the times of record %s: %w", changes[i].To.ID, result.Err)
		}
	}
	return nil
}
