// Package testchange has the changes and calls that tests of stores make.
package testchange

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// Create is the change that creates a record of key in the state.
func Create(key string, state store.State, owner uint64) store.Change {
	return store.Change{To: store.Record{
		ID:        store.NewID("test", "scope", key),
		Token:     store.Token{State: state, Attempt: 1, Owner: owner},
		Operation: "test", Scope: "scope", Key: key, Fingerprint: []byte("fingerprint"),
	}}
}

// Move is the change from the token of c to another state.
func Move(c store.Change, state store.State) store.Change {
	to := c.To
	to.State = state
	return store.Change{If: c.To.Token, To: to}
}

// Current returns the token of the current record of c, also at the end of a test.
func Current(tb testing.TB, s store.Store, c store.Change) store.Token {
	tb.Helper()
	answers, err := s.Get(context.WithoutCancel(tb.Context()), []store.ID{c.To.ID})
	if err != nil {
		tb.Fatalf("Get: %v", err)
	}
	return answers[0].Token
}

// Apply makes the change c and requires that it is applied.
func Apply(tb testing.TB, s store.Store, c store.Change) {
	tb.Helper()
	answers, err := s.Swap(tb.Context(), []store.Change{c})
	if err != nil || !answers[0].Applied(c) {
		tb.Fatalf("Swap = %+v, %v, want it applied", answers, err)
	}
}

// FullStore is a store with all that needs no transaction.
type FullStore interface {
	store.Store
	store.Auditor
	store.Counter
	store.Dequeuer
}

// UseAll makes each kind of call that a program makes, on new records, and returns their errors.
func UseAll(ctx context.Context, s FullStore, key string) error {
	running, old, waiting := Create(key, store.InProgress, 1), Create(key+" old", store.Succeeded, 1), Create(key+" waits", store.Pending, 1)
	old.To.Expire = -time.Second
	results, err := s.Swap(ctx, []store.Change{running, old, waiting})
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		return err
	}
	_, noted := s.SwapNoted(ctx, Move(running, store.InDoubt), store.Note{Actor: "ann", Reason: "test"})
	_, queued := s.Dequeue(ctx, store.Dequeue{Operation: "test", Owner: 2, Limit: 1, Lease: time.Hour})
	purged, removed := s.Purge(ctx, 10)
	if removed == nil && purged != 1 {
		removed = fmt.Errorf("purged %d records, want 1", purged)
	}
	return errors.Join(noted, queued, removed, ReadAll(ctx, s))
}

// ReadAll makes each kind of call of the program semel that changes nothing, and returns their
// errors.
func ReadAll(ctx context.Context, s FullStore) error {
	_, capable := s.Capabilities(ctx)
	_, notes := s.Notes(ctx, store.ID{})
	_, scanned := s.Scan(ctx, store.Query{})
	_, counted := s.Counts(ctx)
	return errors.Join(capable, notes, scanned, counted)
}
