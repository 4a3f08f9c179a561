package hub_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/internal/check"
)

func TestDrain(t *testing.T) {
	start(t, hub.Options{Shards: 2}, func(t *testing.T, h *hub.Hub) {
		var clients []*client
		for user := range int64(50) {
			clients = append(clients, attach(t, h, user))
		}
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- h.Drain(t.Context(), 10*time.Second) }()
		synctest.Wait()
		times := make(map[int64]bool)
		for _, c := range clients {
			var bye struct {
				Push, Reason string
				After        int64 `json:"reconnect_after_ms"`
			}
			if err := json.Unmarshal([]byte(c.last), &bye); err != nil || c.code != hub.CodeDrain || bye.Push != "bye" || bye.Reason != "drain" {
				t.Errorf("closed with %d and %s", c.code, c.last)
			}
			if bye.After < 0 || bye.After > 10_000 {
				t.Errorf("reconnect after %d ms, want at most 10000", bye.After)
			}
			times[bye.After] = true
		}
		if len(times) < 25 {
			t.Errorf("50 clients reconnect at %d times, want jitter", len(times))
		}
		check.Fails(t, h.Attach(h.NewSession(1, "late", &client{}), hub.NewFrame([]byte("0"))), "a session of a draining hub")
		select {
		case err := <-drained:
			t.Errorf("Drain returned %v before the sessions ended", err)
		default:
		}
		for _, c := range clients {
			c.session.Detach()
		}
		check.NoError(t, <-drained)
	})
}

func TestPresenceIsDebounced(t *testing.T) {
	var changes []string
	o := hub.Options{Debounce: 5 * time.Second, Presence: func(user int64, online bool) { changes = append(changes, fmt.Sprint(user, online)) }}
	start(t, o, func(t *testing.T, h *hub.Hub) {
		first, second := attach(t, h, 1), attach(t, h, 1)
		first.session.Detach()
		<-time.After(time.Minute)
		second.session.Detach()
		<-time.After(3 * time.Second)
		third := attach(t, h, 1) // a reload of the page
		<-time.After(10 * time.Second)
		third.session.Detach()
		<-time.After(10 * time.Second)
		synctest.Wait()
		if want := []string{"1 true", "1 false"}; !slices.Equal(changes, want) {
			t.Errorf("changes %q, want %q", changes, want)
		}
	})
}

func TestRevoke(t *testing.T) {
	start(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		c, other := attach(t, h, 1), &client{}
		check.Require(t, h.Attach(h.NewSession(1, "other", other), hub.NewFrame([]byte("0"))))
		h.Revoke(1, "s1")
		synctest.Wait()
		if c.code != hub.CodeRevoked || other.code != 0 {
			t.Errorf("closed with %d and %d, want 3502 and 0", c.code, other.code)
		}
	})
}

// TestFrame: the header of each length class.
func TestFrame(t *testing.T) {
	for size, head := range map[int]int{1: 2, 125: 2, 126: 4, 65535: 4, 65536: 10} {
		f := hub.NewFrame([]byte(strings.Repeat("x", size)))
		if len(f.JSON()) != size || len(f.WebSocket()) != size+head {
			t.Errorf("%d bytes: payload %d and frame %d, want a header of %d", size, len(f.JSON()), len(f.WebSocket()), head)
		}
	}
}

// TestSubscriptionsAreRenewed: an event that was lost may have removed a member.
func TestSubscriptionsAreRenewed(t *testing.T) {
	start(t, hub.Options{Silence: time.Hour}, func(t *testing.T, h *hub.Hub) {
		renews, ignores := attach(t, h, 1), attach(t, h, 2)
		for _, c := range []*client{renews, ignores} {
			subscribe(c, "group:a", 0)
			c.session.Watch("presence:1")
		}
		early := attach(t, h, 3) // was authorized before the loss
		early.session.Subscribe("group:a")
		h.Resync()
		synctest.Wait()
		early.session.Recovered("group:a", 0, hub.NewFrame([]byte(`"recovered"`)))
		subscribe(renews, "group:a", 0)
		renews.session.Watch("presence:1")
		h.Publish(event("group:a", 1))
		<-time.After(time.Minute)
		h.Publish(event("group:a", 2))
		h.Publish(hub.Event{Topic: "presence:1", Frame: hub.NewFrame([]byte(`"online"`))})
		now, again := `{"push":"resync","within_ms":5000}`, `{"push":"resync","within_ms":0}`
		wantFrames(t, renews, `"hello"`, `"recovered"`, now, `"recovered"`, "1", "2", `"online"`)
		wantFrames(t, ignores, `"hello"`, `"recovered"`, now, "1", again)
		wantFrames(t, early, `"hello"`, now, `"recovered"`, "1", again)
	})
}

// TestLossAfterSubscribing: a shard that is behind when an event is lost knows that the
// subscriptions in its mailbox were authorized before the loss.
func TestLossAfterSubscribing(t *testing.T) {
	start(t, hub.Options{Shards: 1, Silence: time.Hour}, func(t *testing.T, h *hub.Hub) {
		c, release := attach(t, h, 1), make(chan struct{})
		slow := h.NewSession(2, "slow", waiting{&client{}, release})
		check.Require(t, h.Attach(slow, hub.NewFrame([]byte("0"))))
		synctest.Wait() // the mailbox is empty, and the shard waits for the transport
		subscribe(c, "group:a", 0)
		h.Resync()
		close(release)
		<-time.After(time.Minute)
		h.Publish(event("group:a", 1))
		wantFrames(t, c, `"hello"`, `"recovered"`, `{"push":"resync","within_ms":5000}`, `{"push":"resync","within_ms":0}`)
	})
}

// waiting is a transport whose writes block the shard.
type waiting struct {
	*client

	release chan struct{}
}

func (w waiting) Write(frames []*hub.Frame) bool {
	<-w.release
	return w.client.Write(frames)
}
