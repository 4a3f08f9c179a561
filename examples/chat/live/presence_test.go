package live_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/examples/chat/live"
)

// TestPresence: a user on another server is online, and offline when that server is
// gone.
func TestPresence(t *testing.T) {
	b := &bus.Local{}
	o := live.Options{Lease: 300 * time.Millisecond, Hub: hub.Options{Debounce: 50 * time.Millisecond}}
	one, two := newSiteOn(t, b, o), newSiteOn(t, b, o)
	watcher := login(t, one, 1)
	if state := watcher.call(`"op":"presence","users":[1,2,10]`); !strings.Contains(state, `{"user":1,"online":true}`) || strings.Contains(state, `10`) {
		t.Errorf("%s, want user 1 online, and nothing of user 10", state)
	}
	c := login(t, two, 2)
	if p := watcher.until(func(p push) bool { return p.Push == "presence" && p.User == 2 }); !p.Online {
		t.Errorf("%+v, want user 2 online", p)
	}
	_ = c.ws.Close(websocket.StatusNormalClosure, "")
	if p := watcher.until(func(p push) bool { return p.Push == "presence" && p.User == 2 }); p.Online {
		t.Errorf("%+v, want user 2 offline", p)
	}
	// A server that has died renews no lease.
	if err := b.Publish(t.Context(), bus.Event{Type: bus.Presence, Payload: []byte(`{"server":"dead","users":[2],"online":true}`)}); err != nil {
		t.Fatal(err)
	}
	for _, online := range []bool{true, false} {
		if p := watcher.until(func(p push) bool { return p.Push == "presence" && p.User == 2 }); p.Online != online {
			t.Errorf("%+v, want online %v", p, online)
		}
	}
}
