package live_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
)

// TestLostRevocations: streams that only listen end when the bus may have lost the revocation of
// their sessions, and the others ask again. All sessions are read by one call.
func TestLostRevocations(t *testing.T) {
	s := newSite(t, live.Options{})
	other, listens := login(t, s, 1), login(t, s, 2)
	read := openStream(t, s, "?ticket=token-3")
	read()
	for _, c := range []*client{other, listens} {
		c.call(`"op":"ping"`)
	}
	s.backend.revoke("session-2", "session-3")
	check.Require(t, s.bus.Publish(t.Context(), bus.Event{Type: bus.Missed}))
	listens.wantClosed(hub.CodeRevoked)
	for got := ""; !strings.Contains(got, `"reason":"revoked"`); got = read() {
		if got != "" && !strings.Contains(got, `"push":"resync"`) {
			t.Errorf("received %s, want resync and bye", got)
		}
	}
	other.pushed("resync")
	check.Equal(t, s.backend.mostChecked(), 3, "sessions that one call has checked")
}

// TestSessionsAreCheckedPeriodically, as a last resort.
func TestSessionsAreCheckedPeriodically(t *testing.T) {
	s := newSite(t, live.Options{Check: 20 * time.Millisecond})
	c := login(t, s, 1)
	c.call(`"op":"ping"`)
	s.backend.down(2) // the database is down for a while
	s.backend.revoke("session-1")
	c.wantClosed(hub.CodeRevoked)
}

// TestRevokedWhileAuthenticating: the revocation arrives after the session was read, and before
// the hub knows it.
func TestRevokedWhileAuthenticating(t *testing.T) {
	s := newSite(t, live.Options{})
	s.backend.onAuthenticated = func(caller live.Identity) {
		s.backend.revoke(caller.Session)
		check.NoError(t, s.bus.Publish(t.Context(), bus.RevokedEvent("", caller.User, caller.Session)))
	}
	c := dial(t, s, "")
	c.ask(`"op":"hello","token":"token-1"`)
	c.wantClosed(hub.CodeRevoked)
	read := openStream(t, s, "?ticket=token-2")
	for range 2 {
		if got := read(); strings.Contains(got, `"reason":"revoked"`) {
			return
		}
	}
	t.Error("the stream goes on")
}
