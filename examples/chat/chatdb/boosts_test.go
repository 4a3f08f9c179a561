package chatdb_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
)

func TestABoostIsNotedOncePerCharge(t *testing.T) {
	onEach(t, 2, func(t *testing.T, db chatdb.DB) {
		g := create(t, db, chatdb.NewGroup{OwnerID: 1, Name: "crew"})
		note := func(charge string, user int64) (b chatdb.Boost) {
			inTx(t, db, func(ctx context.Context, tx chatdb.Tx) (err error) {
				b, err = chatdb.BoostGroupTx(ctx, tx, chatdb.Boost{
					ChargeID: charge, GroupID: g.ID, UserID: user, Amount: 500, Currency: "EUR",
				})
				return err
			})
			return b
		}
		first := note("chg_2", 1)
		if again := note("chg_2", 2); again != first || first.UserID != 1 || first.CreatedAt.IsZero() {
			t.Errorf("noted %+v, then %+v; want the first one twice", first, again)
		}
		second := note("chg_1", 2)
		check.NoDiff(t, cmp.Diff([]chatdb.Boost{first, second}, check.Must(chatdb.BoostsOf(t.Context(), db, g.ID))(t)), "BoostsOf")
		if none, err := chatdb.BoostsOf(t.Context(), db, "grp_none"); len(none) != 0 || err != nil {
			t.Errorf("BoostsOf no group = %v, %v", none, err)
		}
	})
}
