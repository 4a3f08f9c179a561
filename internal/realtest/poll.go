package realtest

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
)

// pollInterval is short for a test and long for a server.
const pollInterval = 10 * time.Millisecond

// Poll calls done until it returns true. If that takes longer than five minutes, the
// test fails.
//
// It is for the state of another process or of a server, which sends the test no
// event: rows of a database, the length of a broker's queue, an open port.
// LISTEN/NOTIFY would need triggers on the tables under test, and SQLite and the
// management of a broker have nothing like it. Within one process, a test waits for
// an event or runs in a testing/synctest bubble.
func Poll(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), processLimit)
	defer cancel()
	check.Require(tb, Retry(ctx, done), "waiting for %s", what)
}

// Retry calls done until it returns true or ctx ends, and returns the error of ctx.
// It is for clients that retry a request which a server has refused for the moment.
func Retry(ctx context.Context, done func() bool) error {
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
