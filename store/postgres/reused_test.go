package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A server that crashed gives out again the numbers of the transactions that were
// open: that such a number committed afterwards says nothing about ours.
func TestNumberThatIsGivenOutAgain(t *testing.T) {
	t.Parallel()
	server := realtest.OwnPostgres(t)
	url := migrated(t, server)
	records := newStore(t, connect(t, url), postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := records.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			// A text of which it cannot be told whether it ends the transaction.
			if err := do(ctx, tx, `DO $$ BEGIN PERFORM 1; END $$`); err != nil {
				t.Errorf("DO: %v", err)
			}
			server.Kill()
			server.Start(t)
			others := connect(t, url)
			for range 50 {
				if _, err := others.Exec(ctx, `SELECT pg_current_xact_id()`); err != nil {
					t.Errorf("another's transaction: %v", err)
				}
			}
			return &last, do(ctx, tx, `SELECT 1`)
		})
	if verdict == store.Committed || err == nil {
		t.Errorf("Atomic = %v, %v, but nothing was ever committed", verdict, err)
	}
}
