package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/internal/check"
)

// client is a transport whose writes the test can hold up.
type client struct {
	session *hub.Session
	frames  []string // written in this order
	writes  int
	stuck   bool // takes one more write and is never ready again
	poison  string
	code    int
	last    string
}

func (c *client) Write(frames []*hub.Frame) bool {
	c.writes++
	for _, f := range frames {
		if c.poison != "" && strings.Contains(string(f.JSON()), c.poison) {
			panic("a bug in a transport")
		}
		c.frames = append(c.frames, string(f.JSON()))
	}
	return !c.stuck
}

func (c *client) Close(code int, _ string, last []*hub.Frame) {
	c.code = code
	for _, f := range last {
		c.last = string(f.JSON())
	}
}

// event is a change whose frame is its number.
func event(topic string, change int64) hub.Event {
	return hub.Event{Topic: topic, Change: change, Frame: hub.NewFrame(fmt.Append(nil, change))}
}

func attach(t *testing.T, h *hub.Hub, user int64) *client {
	t.Helper()
	c := &client{}
	c.session = h.NewSession(user, fmt.Sprint("s", user), c)
	check.Require(t, h.Attach(c.session, hub.NewFrame([]byte(`"hello"`))))
	return c
}

func subscribe(c *client, topic string, change int64) {
	c.session.Subscribe(topic)
	c.session.Recovered(topic, change, hub.NewFrame([]byte(`"recovered"`)))
}

// start runs a test with a hub in a bubble, so that synctest.Wait waits until all
// mailboxes are empty.
func start(t *testing.T, o hub.Options, test func(t *testing.T, h *hub.Hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(o)
		defer h.Close()
		test(t, h)
	})
}

func wantFrames(t *testing.T, c *client, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(c.frames, want) {
		t.Errorf("received %q, want %q", c.frames, want)
	}
}

func TestEventsReachSubscribersOnce(t *testing.T) {
	start(t, hub.Options{Shards: 3}, func(t *testing.T, h *hub.Hub) {
		in, out := attach(t, h, 1), attach(t, h, 2)
		subscribe(in, "group:a", 4)
		h.Publish(event("group:a", 5))
		h.Publish(event("group:a", 5)) // the relay repeats it
		h.Publish(event("group:b", 9))
		h.Publish(event("group:a", 6))
		wantFrames(t, in, `"hello"`, `"recovered"`, "5", "6")
		wantFrames(t, out, `"hello"`)
	})
}

// TestEventsDuringCatchUp: what was published while the client's missed changes
// were read follows the answer, without what the answer contains.
func TestEventsDuringCatchUp(t *testing.T) {
	start(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		c := attach(t, h, 1)
		c.session.Subscribe("group:a")
		for change := range int64(4) {
			h.Publish(event("group:a", change+1))
		}
		wantFrames(t, c, `"hello"`)
		c.session.Recovered("group:a", 2, hub.NewFrame([]byte(`"recovered"`)))
		wantFrames(t, c, `"hello"`, `"recovered"`, "3", "4")
	})
}

func TestMembersAddedAndRemoved(t *testing.T) {
	start(t, hub.Options{Shards: 2}, func(t *testing.T, h *hub.Hub) {
		member, added, removed := attach(t, h, 1), attach(t, h, 2), attach(t, h, 3)
		subscribe(member, "group:a", 0)
		subscribe(removed, "group:a", 0)
		e := event("group:a", 1)
		e.Users, e.Removed = []int64{2, 3}, []int64{3}
		h.Publish(e)
		h.Publish(event("group:a", 2))
		wantFrames(t, member, `"hello"`, `"recovered"`, "1", "2")
		wantFrames(t, added, `"hello"`, "1")
		wantFrames(t, removed, `"hello"`, `"recovered"`, "1")

		// Added again with change 3, and the relay repeats the removal.
		subscribe(removed, "group:a", 3)
		h.Publish(e)
		h.Publish(event("group:a", 4))
		wantFrames(t, removed, `"hello"`, `"recovered"`, "1", `"recovered"`, "4")

		// The repeated removal came while the member subscribed: it asks again.
		added.session.Subscribe("group:a")
		e.Removed = []int64{2}
		h.Publish(e)
		added.session.Recovered("group:a", 4, hub.NewFrame([]byte(`"recovered"`)))
		wantFrames(t, added, `"hello"`, "1", "1", `"recovered"`, `{"push":"resync","within_ms":0}`)
	})
}

// TestSlowSession: a client that does not read loses volatile frames first, and
// then its connection; others receive everything.
func TestSlowSession(t *testing.T) {
	for name, o := range map[string]hub.Options{
		"count": {MaxQueue: 8, MaxVolatile: 2},
		"bytes": {MaxQueueBytes: 4 * 8, MaxVolatile: 2}, // a frame has 4 or 3 bytes
	} {
		t.Run(name, func(t *testing.T) {
			start(t, o, func(t *testing.T, h *hub.Hub) {
				slow, fast := attach(t, h, 1), attach(t, h, 1)
				subscribe(slow, "group:a", 0)
				subscribe(fast, "group:a", 0)
				synctest.Wait()
				slow.stuck = true
				h.Publish(event("group:a", 1)) // is being written from here on
				synctest.Wait()
				for range 3 {
					h.Publish(hub.Event{Topic: "group:a", Volatile: true, Frame: hub.NewFrame([]byte("0"))})
					synctest.Wait()
				}
				check.Equal(t, h.Stats().Dropped, 1, "dropped volatile frames")
				change := int64(2)
				for ; slow.code == 0 && change < 100; change++ {
					h.Publish(event("group:a", change))
					synctest.Wait()
				}
				if slow.code != hub.CodeSlow || !strings.Contains(slow.last, `"reason":"slow","reconnect_after_ms":1000`) {
					t.Errorf("closed with %d and %s, want 4008 and a hint", slow.code, slow.last)
				}
				if s := h.Stats(); s.Dropped != 3 || s.Slow != 1 || s.Sessions != 1 {
					t.Errorf("%+v, want all 3 volatile frames dropped before the session was closed", s)
				}
				check.Equal(t, len(fast.frames), 2+int(change)-1+3, "frames of the other session for %d changes", change-1)
			})
		})
	}
}

func TestFramesThatWaitAreJoined(t *testing.T) {
	start(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		c := attach(t, h, 1)
		subscribe(c, "group:a", 0)
		synctest.Wait()
		c.stuck = true
		h.Publish(event("group:a", 1))
		synctest.Wait()
		before := c.writes
		for change := range int64(20) {
			h.Publish(event("group:a", change+2))
		}
		synctest.Wait()
		c.session.Written()
		synctest.Wait()
		if c.writes != before+1 || len(c.frames) != 2+21 {
			t.Errorf("%d writes and %d frames, want 1 and 23", c.writes-before, len(c.frames))
		}
	})
}

// TestStuckWrite: a transport that never becomes ready is closed, even when
// nothing more is published.
func TestStuckWrite(t *testing.T) {
	start(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		c := attach(t, h, 1)
		c.session.Exempt()
		synctest.Wait()
		c.stuck = true
		c.session.Send(hub.NewFrame([]byte("0")))
		<-time.After(20 * time.Second)
		synctest.Wait()
		check.Equal(t, c.code, hub.CodeSlow, "closed with")
	})
}

func TestSilentSession(t *testing.T) {
	start(t, hub.Options{Silence: time.Minute}, func(t *testing.T, h *hub.Hub) {
		silent, heard, exempt := attach(t, h, 1), attach(t, h, 1), attach(t, h, 1)
		exempt.session.Exempt()
		<-time.After(40 * time.Second)
		heard.session.Heard()
		<-time.After(40 * time.Second)
		synctest.Wait()
		if silent.code != hub.CodeSilent || heard.code != 0 || exempt.code != 0 {
			t.Errorf("closed with %d, %d, %d, want 3001, 0, 0", silent.code, heard.code, exempt.code)
		}
	})
}

// TestPanic: the shard goes on with the other sessions and their subscriptions,
// and tells them that an event may be lost.
func TestPanic(t *testing.T) {
	start(t, hub.Options{Shards: 1}, func(t *testing.T, h *hub.Hub) {
		bad, good, catching := attach(t, h, 1), attach(t, h, 2), attach(t, h, 3)
		for _, c := range []*client{bad, good} {
			subscribe(c, "group:a", 0)
		}
		catching.session.Subscribe("group:a")
		synctest.Wait()
		bad.poison = "2"
		for change := range int64(4) {
			h.Publish(event("group:a", change+1))
			synctest.Wait()
		}
		catching.session.Recovered("group:a", 1, hub.NewFrame([]byte(`"recovered"`)))
		synctest.Wait()
		check.Equal(t, bad.code, hub.CodeInternal, "the code for the session that panicked")
		got := slices.DeleteFunc(slices.Clone(good.frames), func(f string) bool { return strings.Contains(f, "resync") })
		if len(got) == len(good.frames) || !slices.Equal(got, []string{`"hello"`, `"recovered"`, "1", "2", "3", "4"}) {
			t.Errorf("received %q, want all changes and a resync", good.frames)
		}
		if f := catching.frames; !slices.Equal(f[len(f)-4:], []string{`"recovered"`, "2", "3", "4"}) {
			t.Errorf("received %q, want what was held before the panic after the answer", f)
		}
		if s := h.Stats(); s.Restarts != 1 || s.Sessions != 2 {
			t.Errorf("%+v, want 1 restart and 2 sessions", s)
		}
		bad.session.Detach() // its connection ends after the panic
		synctest.Wait()
		check.Equal(t, h.Stats().Sessions, 2, "sessions")
	})
}

// TestOverload: events that find a full mailbox are dropped without blocking the
// publisher, and sessions are told.
func TestOverload(t *testing.T) {
	start(t, hub.Options{Shards: 1, Mailbox: 4}, func(t *testing.T, h *hub.Hub) {
		c := attach(t, h, 1)
		subscribe(c, "group:a", 0)
		synctest.Wait()
		busy := make(chan struct{})
		c.session.IfSubscribed("group:a", func(bool) { <-busy })
		synctest.Wait()
		for change := range int64(10) {
			h.Publish(event("group:a", change+1))
		}
		close(busy)
		synctest.Wait()
		want := []string{`"hello"`, `"recovered"`, "1", "2", "3", "4", `{"push":"resync","within_ms":5000}`}
		wantFrames(t, c, want...)
		check.Equal(t, h.Stats().Missed, 6, "missed events")
	})
}

// TestUnwatch ends what a user watches, and the watching of a topic, by choice.
func TestUnwatch(t *testing.T) {
	start(t, hub.Options{Shards: 2}, func(t *testing.T, h *hub.Hub) {
		all := []*client{attach(t, h, 1), attach(t, h, 1), attach(t, h, 2), attach(t, h, 3)}
		for _, c := range all {
			for user := range 3 {
				c.session.Watch(fmt.Sprint("presence:", user+1))
			}
			subscribe(c, "group:a", 0)
		}
		synctest.Wait()
		if got := h.Sessions(); len(got) != 3 || got["s1"] != 1 || got["s3"] != 3 {
			t.Errorf("sessions %v, want those of 3 users", got)
		}
		h.Unwatch(1, func(topic string) bool { return topic == "presence:1" || topic == "presence:3" })
		h.UnwatchTopic("presence:1", func(user int64) bool { return user != 2 })
		for user := range 3 {
			h.Publish(hub.Event{Topic: fmt.Sprint("presence:", user+1), Frame: hub.NewFrame(fmt.Append(nil, user+1))})
		}
		h.Publish(event("group:a", 9))
		synctest.Wait()
		for i, want := range [][]string{{"1", "3", "9"}, {"1", "3", "9"}, {"2", "3", "9"}, {"1", "2", "3", "9"}} {
			wantFrames(t, all[i], append([]string{`"hello"`, `"recovered"`}, want...)...)
		}
	})
}
