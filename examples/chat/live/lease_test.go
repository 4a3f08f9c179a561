package live

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/internal/check"
)

// TestUsersOfADeadServerGoOffline: a server that has died renews no lease.
func TestUsersOfADeadServerGoOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var online []bool
		p := newPresence("one", time.Minute, func(of onlineStatus) { online = append(online, of.Online) })
		p.merge([]byte(`{"server":"dead","users":[2],"online":true}`))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		check.ErrorIs(t, p.run(ctx, &bus.Local{}), context.DeadlineExceeded, "run")
		if !slices.Equal(online, []bool{true, false}) {
			t.Errorf("user 2 was online: %v, want once, and then not", online)
		}
	})
}
