package live_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
)

// view is what a client has seen of a group, by the rules of the protocol.
type view struct{ texts []string }

// follow reads until the view has the given number of messages, and drops its
// connection now and then. It calls subscribed after the first subscription, and
// closedGap after the first gap.
func (v *view) follow(t *testing.T, s *site, user, count int, random *rand.Rand, subscribed, closedGap func()) {
	t.Helper()
	subscribed, closedGap = sync.OnceFunc(subscribed), sync.OnceFunc(closedGap)
	defer subscribed() // after a failure too
	defer closedGap()
	for len(v.texts) < count {
		c := login(t, s, user)
		v.catchUp(c)
		subscribed()
		for left := 5 + random.IntN(60); left > 0 && len(v.texts) < count; left-- {
			switch p := c.next(); {
			case p.Push == "resync":
				v.catchUp(c)
			case p.Push != "message" || int(p.Change) <= len(v.texts):
			case int(p.Change) == len(v.texts)+1:
				v.texts = append(v.texts, p.Message.Text)
			default:
				v.catchUp(c)
				closedGap()
			}
		}
		_ = c.ws.CloseNow()
	}
}

// catchUp subscribes again after the last change, and ignores pushes until the
// answer, which contains them.
func (v *view) catchUp(c *client) {
	c.t.Helper()
	var missed struct{ Messages []struct{ Text string } }
	if err := json.Unmarshal([]byte(c.call(`"op":"subscribe","group":"g","after":%d`, len(v.texts))), &missed); err != nil {
		c.t.Error(err)
	}
	for _, m := range missed.Messages {
		v.texts = append(v.texts, m.Text)
	}
}

// TestViewsAreComplete: clients that reconnect at random, on a bus that loses and
// repeats events, end with all messages, once and in order.
func TestViewsAreComplete(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const messages = 400
	s := newSite(t, live.Options{Rate: 1e6, Burst: 1e6, Hub: hub.Options{Shards: 3, MaxQueue: 10_000}})
	for range messages / 10 {
		s.backend.lose[4+rand.Int64N(messages-4)] = true // the last one is published
	}
	s.backend.lose[2] = true
	var views [8]view
	var running, subscribed, closedGap sync.WaitGroup
	subscribed.Add(len(views))
	closedGap.Add(len(views))
	for i := range views {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		running.Go(func() { views[i].follow(t, s, i+1, messages, random, subscribed.Done, closedGap.Done) })
	}
	subscribed.Wait()
	var last json.RawMessage
	for i := range messages {
		m := check.Must(s.backend.Send(t.Context(), live.Identity{User: 1}, "g", fmt.Sprint(i), fmt.Sprint("t", i)))(t)
		if i%7 == 0 && last != nil { // the relay repeats an event
			repeat(t, s, last)
		}
		last = m
		if i == 2 {
			// Each client sees that the second message is missing. A later gap may be closed
			// by a resync or a reconnection first.
			closedGap.Wait()
		}
		if i%50 == 49 {
			check.Require(t, s.bus.Publish(t.Context(), bus.Event{Type: bus.Missed}))
		}
	}
	running.Wait()
	for i, v := range views {
		for n, text := range v.texts {
			if want := fmt.Sprint("t", n); text != want || len(v.texts) != messages {
				t.Fatalf("view %d has %d messages, and %s at %d, want %s", i, len(v.texts), text, n, want)
			}
		}
	}
}

func repeat(t *testing.T, s *site, message json.RawMessage) {
	t.Helper()
	var of struct{ Change int64 }
	check.Require(t, json.Unmarshal(message, &of))
	push := fmt.Sprintf(`{"push":"message","group":"g","change":%d,"message":%s}`, of.Change, message)
	e := check.Must(bus.GroupEvent("again", "message", "g", []byte(push)))(t)
	check.Require(t, s.bus.Publish(t.Context(), e))
}

// TestTLS: over TLS a goroutine writes everything.
func TestTLS(t *testing.T) {
	s := newSite(t, live.Options{})
	web := httptest.NewTLSServer(http.HandlerFunc(s.WebSocket))
	t.Cleanup(web.Close)
	ws, _, err := websocket.Dial(t.Context(), strings.Replace(web.URL, "https", "wss", 1), &websocket.DialOptions{
		Subprotocols: []string{live.Subprotocol}, HTTPClient: web.Client(),
	})
	check.Require(t, err)
	t.Cleanup(func() { _ = ws.CloseNow() })
	c := &client{t: t, ws: ws}
	c.call(`"op":"hello","token":"token-1"`)
	c.call(`"op":"subscribe","group":"g","after":0`)
	for i := range 50 {
		c.call(`"op":"send","group":"g","key":"k%d","text":"%s"`, i, text(10_000))
	}
	if got := s.Stats(); got.Delivered < 102 {
		t.Errorf("%+v, want at least 102 frames", got)
	}
}
