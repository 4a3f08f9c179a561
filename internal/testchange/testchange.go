// Package testchange has the changes that tests of stores make.
package testchange

import (
	"context"
	"testing"

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
