package live_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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

func TestHello(t *testing.T) {
	s := newSite(t, live.Options{Heartbeat: 20 * time.Second})
	c := dial(t, s, "")
	var hello struct {
		User      int64
		Session   string
		Heartbeat int64 `json:"heartbeat_ms"`
		Epoch     string
	}
	check.Require(t, json.Unmarshal([]byte(c.call(`"op":"hello","token":"token-3"`)), &hello))
	if hello.User != 3 || hello.Session != "session-3" || hello.Heartbeat != 20_000 || hello.Epoch == "" {
		t.Errorf("hello: %+v", hello)
	}
	c.call(`"op":"ping"`)
	ticket := dial(t, s, "?ticket=token-4")
	if p := ticket.next(); string(p.ID) != `"hello"` || !strings.Contains(string(p.OK), `"user":4`) {
		t.Errorf("with a ticket: %+v", p)
	}
	ws, _, err := s.open(t, "", http.Header{"Authorization": {"Bearer token-5"}})
	check.Require(t, err)
	if p := (&client{t: t, ws: ws}).next(); string(p.ID) != `"hello"` || !strings.Contains(string(p.OK), `"user":5`) {
		t.Errorf("with a header: %+v", p)
	}
}

func TestBadClients(t *testing.T) {
	s := newSite(t, live.Options{MaxMessage: 1000})
	const in = `{"id":1,"op":"hello","token":"token-1"}`
	for name, test := range map[string]struct {
		frames []string
		code   int
	}{
		"unknown token":     {[]string{`{"id":1,"op":"hello","token":"nonsense"}`}, hub.CodeBadToken},
		"application down":  {[]string{`{"id":1,"op":"hello","token":"down"}`}, hub.CodeInternal},
		"no hello":          {[]string{`{"id":1,"op":"ping"}`}, 1008},
		"not JSON at first": {[]string{`hello`}, 1008},
		"too large":         {[]string{`{"id":1,"op":"hello","token":"` + text(2000) + `"}`}, 1009},
		"not JSON":          {[]string{in, `{"id":`}, 1007},
		"id is an object":   {[]string{in, `{"id":{},"op":"ping"}`}, 1007},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s, "")
			for _, frame := range test.frames {
				c.write(frame)
			}
			c.wantClosed(test.code)
		})
	}
	t.Run("not UTF-8", func(t *testing.T) {
		c := login(t, s, 1)
		c.write("{\"id\":2,\"op\":\"send\",\"group\":\"g\",\"key\":\"bad\",\"text\":\"\xff\"}")
		c.wantClosed(1007)
		s.backend.mu.Lock()
		defer s.backend.mu.Unlock()
		if _, stored := s.backend.byKey["bad"]; stored {
			t.Error("a message that is not UTF-8 was stored")
		}
	})
	t.Run("binary", func(t *testing.T) {
		c := login(t, s, 1)
		check.Require(t, c.ws.Write(t.Context(), websocket.MessageBinary, []byte("{}")))
		c.wantClosed(1003)
	})
	t.Run("unknown operation", func(t *testing.T) {
		check.Equal(t, login(t, s, 1).refused(`"op":"dance"`).Code, "unknown_op", "refused with")
	})
	t.Run("another origin", func(t *testing.T) {
		_, answer, err := s.open(t, "", http.Header{"Origin": {"https://evil.example"}})
		if err == nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("a page of another origin: %v, want 403", err)
		}
	})
	t.Run("no subprotocol", func(t *testing.T) {
		if _, answer, err := websocket.Dial(t.Context(), s.url+"/v1/ws", nil); err == nil || answer.StatusCode != http.StatusBadRequest {
			t.Errorf("without a subprotocol: %v, want 400", err)
		}
	})
}

// TestSend: the author is answered, members receive the message, and a repeated
// key changes nothing.
func TestSend(t *testing.T) {
	s := newSite(t, live.Options{})
	author, member := login(t, s, 1), login(t, s, 2)
	for _, c := range []*client{author, member} {
		c.call(`"op":"subscribe","group":"g","after":0`)
	}
	first := author.call(`"op":"send","group":"g","key":"k1","text":"hello"`)
	check.Equal(t, author.call(`"op":"send","group":"g","key":"k1","text":"hello"`), first, "the second answer")
	author.call(`"op":"send","group":"g","key":"k2","text":"bye"`)
	for change, want := range []string{"hello", "bye"} {
		if p := member.pushed("message"); p.Message.Text != want || p.Change != int64(change+1) {
			t.Errorf("received %+v, want %s", p, want)
		}
	}
	if err := author.refused(`"op":"send","group":"other","key":"k3","text":"x"`); err.Code != "not_found" || err.Temporary {
		t.Errorf("to another group: %v", err)
	}
}

func TestCatchUp(t *testing.T) {
	s := newSite(t, live.Options{})
	author, late := login(t, s, 1), login(t, s, 2)
	for i := range 3 {
		author.call(`"op":"send","group":"g","key":"k%d","text":"t%d"`, i, i)
	}
	// A message that commits between the subscription and the read is received once.
	s.backend.onCatch = func() { author.call(`"op":"send","group":"g","key":"k3","text":"t3"`) }
	var got struct {
		Recovered bool
		Change    int64
		Messages  []struct{ Text string }
	}
	check.Require(t, json.Unmarshal([]byte(late.call(`"op":"subscribe","group":"g","after":1`)), &got))
	if !got.Recovered || got.Change != 4 || len(got.Messages) != 3 || got.Messages[0].Text != "t1" {
		t.Errorf("recovered %+v, want changes 2 to 4", got)
	}
	// A change that the bus has lost is visible as a gap, and found by reading again.
	s.backend.lose[5] = true
	author.call(`"op":"send","group":"g","key":"k4","text":"t4"`)
	author.call(`"op":"send","group":"g","key":"k5","text":"t5"`)
	check.Equal(t, late.pushed("message").Change, 6, "received change")
	if again := late.call(`"op":"subscribe","group":"g","after":4`); !strings.Contains(again, "t4") || !strings.Contains(again, "t5") {
		t.Errorf("recovered %s, want t4 and t5", again)
	}
	for i := range 600 {
		check.Must(s.backend.Send(t.Context(), live.Identity{User: 1}, "g", fmt.Sprint("many", i), "x"))(t)
	}
	if many := login(t, s, 3).call(`"op":"subscribe","group":"g","after":0`); !strings.Contains(many, `"recovered":false`) {
		t.Errorf("606 missed changes: %s, want recovered false", many)
	}
	check.Equal(t, login(t, s, 99).refused(`"op":"subscribe","group":"g","after":0`).Code, "not_found", "a stranger is refused with")
}

func TestVolatilePushes(t *testing.T) {
	s := newSite(t, live.Options{})
	one, two := login(t, s, 1), login(t, s, 2)
	check.Equal(t, one.refused(`"op":"typing","group":"g"`).Code, "not_subscribed", "typing without a subscription")
	for _, c := range []*client{one, two} {
		c.call(`"op":"subscribe","group":"g","after":0`)
	}
	one.call(`"op":"typing","group":"g"`)
	if p := two.pushed("typing"); p.User != 1 || p.Group != "g" {
		t.Errorf("typing: %+v", p)
	}
	one.call(`"op":"read","group":"g","seq":7`)
	if p := two.pushed("read"); p.User != 1 || p.Seq != 7 || s.backend.read["g"] != 7 {
		t.Errorf("read: %+v", p)
	}
	one.call(`"op":"read","group":"g","seq":3`)
	one.call(`"op":"read","group":"g","seq":7`)
	one.call(`"op":"read","group":"g","seq":8`)
	check.Equal(t, two.pushed("read").Seq, 8, "the marker after older messages, then 8")
	two.call(`"op":"unsubscribe","group":"g"`)
	one.call(`"op":"typing","group":"g"`)
	check.Equal(t, two.refused(`"op":"typing","group":"g"`).Code, "not_subscribed", "after unsubscribe")
}

// TestRateLimit: all sockets of a user share one limit, also those that are opened later, and
// other users are not limited by it.
func TestRateLimit(t *testing.T) {
	s := newSite(t, live.Options{Rate: 0.001, Burst: 6})
	phone, laptop := login(t, s, 1), login(t, s, 1) // two frames
	for range 2 {
		phone.call(`"op":"ping"`)
		laptop.call(`"op":"ping"`)
	}
	for _, c := range []*client{phone, laptop} {
		if err := c.refused(`"op":"ping"`); err.Code != "rate_limited" || !err.Temporary || err.RetryAfter < 1000 {
			t.Errorf("refused with %+v, want a temporary error and a time", err)
		}
	}
	login(t, s, 2).call(`"op":"ping"`)
	_ = phone.ws.CloseNow()
	late := dial(t, s, "")
	if err := late.refused(`"op":"hello","token":"token-1"`); err.Code != "rate_limited" || err.RetryAfter < 1000 {
		t.Errorf("a further socket: %+v, want a temporary error and a time", err)
	}
	late.wantClosed(hub.CodeTooMany)
	for range 100 {
		laptop.ask(`"op":"ping"`)
	}
	laptop.wantClosed(1008)
}

// TestSlowClient: a client that stops reading is closed, and another one of the same
// user receives everything.
func TestSlowClient(t *testing.T) {
	s := newSite(t, live.Options{Hub: hub.Options{Shards: 1, MaxQueueBytes: 1 << 20}})
	slow, fast := login(t, s, 1), login(t, s, 1)
	for _, c := range []*client{slow, fast} {
		c.call(`"op":"subscribe","group":"g","after":0`)
	}
	large := text(50_000)
	sent := 0
	for ; s.Stats().Slow == 0 && sent < 2000; sent++ {
		check.Must(s.backend.Send(t.Context(), live.Identity{User: 2}, "g", fmt.Sprint(sent), large))(t)
		if p := fast.pushed("message"); p.Change != int64(sent+1) {
			t.Fatalf("received change %d, want %d", p.Change, sent+1)
		}
	}
	if got := s.Stats().Slow; got != 1 {
		t.Fatalf("%d sessions were slow after %d messages, want 1", got, sent)
	}
	if last := slow.wantClosed(hub.CodeSlow); last.Push != "bye" || last.Reason != "slow" || last.After == 0 {
		t.Errorf("the last frame is %+v, want a hint when to reconnect", last)
	}
}

// TestBugInApplication: a panic ends one session.
func TestBugInApplication(t *testing.T) {
	s := newSite(t, live.Options{})
	bad, good := login(t, s, 1), login(t, s, 2)
	bad.ask(`"op":"send","group":"g","key":"k","text":"bug"`)
	bad.wantClosed(hub.CodeInternal)
	good.call(`"op":"ping"`)
}

func TestDrain(t *testing.T) {
	s := newSite(t, live.Options{})
	c := login(t, s, 1)
	c.call(`"op":"ping"`)
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(t.Context(), time.Second) }()
	if last := c.wantClosed(hub.CodeDrain); last.Push != "bye" || last.Reason != "drain" {
		t.Errorf("the last frame is %+v, want bye", last)
	}
	check.NoError(t, <-drained)
	late := dial(t, s, "")
	late.ask(`"op":"hello","token":"token-1"`)
	late.wantClosed(hub.CodeDrain)
}

func TestRevokedSession(t *testing.T) {
	s := newSite(t, live.Options{})
	told, asks, other := login(t, s, 1), login(t, s, 2), login(t, s, 3)
	for _, c := range []*client{told, asks, other} {
		c.call(`"op":"ping"`)
	}
	check.Require(t, s.bus.Publish(t.Context(), bus.RevokedEvent("", 1, "session-1")))
	told.wantClosed(hub.CodeRevoked)
	s.backend.revoke("session-2") // and the event was lost
	asks.ask(`"op":"send","group":"g","key":"k","text":"x"`)
	asks.wantClosed(hub.CodeRevoked)
	other.call(`"op":"ping"`)
}

// TestVanishedClient: a client that is gone without closing its connection does not keep its session.
func TestVanishedClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, live.Options{Heartbeat: 300 * time.Millisecond, Hub: hub.Options{MaxSessions: 1}})
	login(t, s, 1) // reads and writes nothing more
	err := realtest.Retry(t.Context(), func() bool { return s.Stats().Sessions == 0 })
	check.Require(t, err, "%d sessions are attached", s.Stats().Sessions)
	if testing.Short() {
		return // the closing handshake takes 5 seconds
	}
	s.untilAccepted(t)
}
