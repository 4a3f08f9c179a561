package chatdb_test

import (
	"context"
	"testing"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// TestTheServerIsAnAuthor: the migration adds the server's user, and no other user
// gets its ID.
func TestTheServerIsAnAuthor(t *testing.T) {
	onEach(t, 1, func(t *testing.T, db chatdb.DB) {
		group := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew"}).ID
		inTx(t, db, func(ctx context.Context, tx chatdb.Tx) error {
			m, err := new(chatdb.Writer).Send(ctx, tx, chatdb.NewMessage{GroupID: group, AuthorID: chatdb.ServerID, Text: "Welcome."})
			if err == nil && (m.Author != "Semel" || m.Seq != 1) {
				t.Errorf("the server's message is %+v", m)
			}
			return err
		})
	})
}

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
