package chatdb_test

import (
	"context"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// TestWelcomesAreAppendOnly: two welcomes of one member are two rows, so that
// tests can count duplicates.
func TestWelcomesAreAppendOnly(t *testing.T) {
	onEach(t, 0, func(t *testing.T, db chatdb.DB) {
		for range 2 {
			inTx(t, db, func(ctx context.Context, tx chatdb.Tx) error { return chatdb.LogWelcomeTx(ctx, tx, "g", 1, 1) })
		}
		var rows int
		if err := db.QueryRow(t.Context(), `select count(*) from welcomes`).Scan(&rows); err != nil || rows != 2 {
			t.Errorf("%d rows, %v; want 2", rows, err)
		}
	})
}
