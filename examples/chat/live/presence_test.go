package live_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestPresence: a user on another server is online until the last session ends.
func TestPresence(t *testing.T) {
	b := &bus.Local{}
	o := live.Options{Hub: hub.Options{Debounce: 50 * time.Millisecond}}
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
}

// TestPresenceEndsWithMembership: a removed member receives no more presence of the others, and they
// receive none of theirs.
func TestPresenceEndsWithMembership(t *testing.T) {
	s := newSite(t, live.Options{})
	stays, removed := login(t, s, 1), login(t, s, 2)
	stays.call(`"op":"presence","users":[4,5]`)
	removed.call(`"op":"presence","users":[2,4]`)
	// toggle makes users 4 and 5 change, and returns the changes that a client receives.
	online := false
	toggle := func() (ofStays, ofRemoved []int64) {
		online = !online
		payload := fmt.Appendf(nil, `{"server":"other","users":[4,5],"online":%v}`, online)
		check.Require(t, s.bus.Publish(t.Context(), bus.Event{Type: bus.Presence, Payload: payload}))
		return stays.presenceBeforePong(), removed.presenceBeforePong()
	}
	if a, b := toggle(); !slices.Equal(a, []int64{4, 5}) || !slices.Equal(b, []int64{4}) {
		t.Fatalf("received the presence of %v and %v", a, b)
	}
	s.backend.mu.Lock()
	s.backend.alone[2], s.backend.alone[5] = true, true
	s.backend.mu.Unlock()
	s.backend.down(2)
	e := bus.Event{ID: "e", Topic: bus.GroupTopic("g"), Change: 1, Payload: []byte(`{"push":"group"}`), Removed: []int64{2, 5}}
	check.Require(t, s.bus.Publish(t.Context(), e))
	err := realtest.Retry(t.Context(), func() bool {
		a, b := toggle()
		return slices.Equal(a, []int64{4}) && len(b) == 0
	})
	check.NoError(t, err)
}

// presenceBeforePong returns the users whose presence has changed, sorted, up to the answer of a second
// ping: in one write of the server, volatile pushes come after answers.
func (c *client) presenceBeforePong() (users []int64) {
	c.t.Helper()
	for range 2 {
		id := c.ask(`"op":"ping"`)
		c.until(func(p push) bool {
			if p.Push == "presence" {
				users = append(users, p.User)
			}
			return string(p.ID) == id
		})
	}
	slices.Sort(users)
	return users
}
