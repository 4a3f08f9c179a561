package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// site is a server with real sockets.
type site struct {
	*live.Server

	backend *backend
	bus     bus.Bus
	url     string
}

func newSite(t *testing.T, o live.Options) *site { return newSiteOn(t, &bus.Local{}, o) }

func newSiteOn(t *testing.T, b bus.Bus, o live.Options) *site {
	t.Helper()
	ready := &readyBus{Bus: b, done: make(chan struct{})}
	s := &site{backend: newBackend(b), bus: b}
	s.Server = live.New(s.backend, ready, o)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ws", s.WebSocket)
	mux.HandleFunc("GET /v1/events", s.Events)
	web := httptest.NewServer(mux)
	s.url = web.URL
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	<-ready.done
	t.Cleanup(func() {
		end, done := context.WithTimeout(context.Background(), 20*time.Second)
		defer done()
		check.NoError(t, s.Drain(end, 0))
		web.CloseClientConnections()
		web.Close()
		cancel()
		check.ErrorIs(t, <-ran, context.Canceled, "Run")
		s.Close()
	})
	return s
}

// readyBus closes done when the server is subscribed.
type readyBus struct {
	bus.Bus

	once sync.Once
	done chan struct{}
}

func (r *readyBus) Subscribe(ctx context.Context, f func(bus.Event)) error {
	return r.Bus.Subscribe(ctx, func(e bus.Event) {
		f(e) // the first event says that earlier ones may be lost; no client is attached yet
		r.once.Do(func() { close(r.done) })
	})
}

// push is any frame of the server.
type push struct {
	ID    json.RawMessage
	OK    json.RawMessage
	Err   *live.Error
	Push  string
	Group string

	Change  int64
	Message struct{ Text string }
	User    int64
	Seq     int64
	Online  bool
	Reason  string
	After   int64 `json:"reconnect_after_ms"`
}

// client is a WebSocket client.
type client struct {
	t  *testing.T
	ws *websocket.Conn
	n  int
}

// open opens a socket with headers, if the server accepts it.
func (s *site) open(t *testing.T, query string, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	ws, answer, err := websocket.Dial(t.Context(), s.url+"/v1/ws"+query, &websocket.DialOptions{
		Subprotocols: []string{live.Subprotocol}, HTTPHeader: header,
	})
	if err == nil {
		ws.SetReadLimit(1 << 22)
		t.Cleanup(func() { _ = ws.CloseNow() })
	}
	return ws, answer, err
}

func dial(t *testing.T, s *site, query string) *client {
	t.Helper()
	ws, _, err := s.open(t, query, nil)
	check.Require(t, err)
	return &client{t: t, ws: ws}
}

// login dials and says hello.
func login(t *testing.T, s *site, user int) *client {
	t.Helper()
	c := dial(t, s, "")
	c.call(`"op":"hello","token":"token-%d"`, user)
	return c
}

func (c *client) write(text string) {
	c.t.Helper()
	if err := c.ws.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request with a new id, and returns the id.
func (c *client) ask(format string, args ...any) string {
	c.t.Helper()
	c.n++
	c.write(fmt.Sprintf(`{"id":%d,%s}`, c.n, fmt.Sprintf(format, args...)))
	return fmt.Sprint(c.n)
}

// next returns the next frame.
func (c *client) next() push {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	_, data, err := c.ws.Read(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	var p push
	if err := json.Unmarshal(data, &p); err != nil {
		c.t.Fatalf("%s: %v", data, err)
	}
	return p
}

// until returns the first frame that fits, and drops others.
func (c *client) until(fits func(push) bool) push {
	c.t.Helper()
	for {
		if p := c.next(); fits(p) {
			return p
		}
	}
}

// call returns the answer to a request that must succeed.
func (c *client) call(format string, args ...any) string {
	c.t.Helper()
	p := c.answer(c.ask(format, args...))
	if p.Err != nil {
		c.t.Fatalf("%s: %v", fmt.Sprintf(format, args...), p.Err)
	}
	return string(p.OK)
}

// refused returns the error of a request that must fail.
func (c *client) refused(format string, args ...any) *live.Error {
	c.t.Helper()
	p := c.answer(c.ask(format, args...))
	if p.Err == nil {
		c.t.Fatalf("%s: %s, want an error", fmt.Sprintf(format, args...), p.OK)
	}
	return p.Err
}

func (c *client) answer(id string) push {
	c.t.Helper()
	return c.until(func(p push) bool { return string(p.ID) == id })
}

// pushed returns the next push of a kind.
func (c *client) pushed(kind string) push {
	c.t.Helper()
	return c.until(func(p push) bool { return p.Push == kind })
}

// wantClosed reads until the server closes with the code.
func (c *client) wantClosed(code int) (last push) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, data, err := c.ws.Read(ctx)
		if err != nil {
			if got := int(websocket.CloseStatus(err)); got != code {
				c.t.Errorf("closed with %v, want %d", err, code)
			}
			return last
		}
		last = push{}
		if err := json.Unmarshal(data, &last); err != nil {
			c.t.Errorf("%s: %v", data, err)
		}
	}
}

func text(n int) string { return strings.Repeat("x", n) }

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }
