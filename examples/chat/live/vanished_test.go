package live_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/realtest"
)

// TestVanishedClient: a client that is gone without closing its connection does not keep its session.
func TestVanishedClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, live.Options{Heartbeat: 300 * time.Millisecond, Hub: hub.Options{MaxSessions: 1}})
	login(t, s, 1) // reads and writes nothing more
	err := realtest.Retry(t.Context(), func() bool { return s.Stats().Sessions == 0 })
	if err != nil {
		t.Fatalf("%d sessions are attached: %v", s.Stats().Sessions, err)
	}
	if testing.Short() {
		return // the closing handshake takes 5 seconds
	}
	err = realtest.Retry(t.Context(), func() bool {
		c := dial(t, s, "")
		return c.answer(c.ask(`"op":"hello","token":"token-1"`)).Err == nil
	})
	if err != nil {
		t.Error(err)
	}
}
