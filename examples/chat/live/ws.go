package live

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/semelgo/semel/examples/chat/hub"
)

// conn is a WebSocket connection. One goroutine at a time reads; the hub writes.
type conn struct {
	server  *Server
	ws      *websocket.Conn
	socket  *socket
	session *hub.Session // nil before hello
	caller  Identity
	refused int      // frames in a row that were above the rate limit
	groups  []string // subscribed topics
	watched []int64  // users whose presence is subscribed
	goesOn  bool     // after the present frame
}

// WebSocket serves `/v1/ws`.
func (s *Server) WebSocket(w http.ResponseWriter, r *http.Request) {
	if !slices.ContainsFunc(r.Header.Values("Sec-WebSocket-Protocol"), func(line string) bool {
		return strings.Contains(line, Subprotocol)
	}) {
		http.Error(w, "offer the subprotocol "+Subprotocol, http.StatusBadRequest)
		return
	}
	given := credentialsOf(r)
	known := func() {}
	if given == (Credentials{}) {
		var full int
		if known, full = s.silent.admit(s.options.Address(r)); full != 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(helloTimeout.Seconds())))
			http.Error(w, "too many connections have not said hello", full)
			return
		}
	}
	defer known()
	u := &upgrader{ResponseWriter: w, timeout: s.options.WriteTimeout}
	ws, err := websocket.Accept(u, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, OriginPatterns: s.options.Origins})
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(s.options.MaxMessage)
	c := &conn{server: s, ws: ws, socket: u.socket}
	defer c.next()
	c.goesOn = c.open(given) //nolint:contextcheck // the session outlives the request
}

// serve handles one frame of the client.
func (c *conn) serve() {
	defer c.next()
	c.goesOn = false
	data, ok := c.read()
	if !ok {
		return
	}
	c.session.Heard()
	c.goesOn = c.handle(data)
}

// next starts a goroutine for the next frame: a new goroutine has a small
// stack while it waits for the client. A goroutine that has handled a frame or a
// request keeps a large one. If the connection does not go on, next ends it. A
// session whose handling has panicked ends, and others go on.
func (c *conn) next() {
	if reason := recover(); reason != nil {
		c.server.options.Log.Error("a session panicked", slog.Any("panic", reason))
		c.reject(hub.CodeInternal, "internal error")
		c.goesOn = false
	}
	if c.goesOn {
		go c.serve()
		return
	}
	if c.session != nil {
		c.session.Detach()
	}
	_ = c.ws.CloseNow()
}

// open handles the credentials of the request or, without them, the first frame. It reports whether the
// session is attached.
func (c *conn) open(given Credentials) bool {
	hello := request{ID: []byte(`"hello"`), Op: "hello", Token: given.Token, Ticket: given.Ticket}
	if given == (Credentials{}) {
		late := time.AfterFunc(helloTimeout, func() { c.reject(codeNoHello, "no hello") })
		data, ok := c.read()
		if !late.Stop() || !ok {
			return false
		}
		var err *Error
		if hello, err = parse(data); err != nil || hello.Op != "hello" {
			c.reject(int(websocket.StatusPolicyViolation), "the first frame is not hello")
			return false
		}
	}
	before := c.server.checks.changes.Load()
	caller, failed := c.server.authenticate(context.Background(), Credentials{hello.Token, hello.Ticket})
	if failed != nil {
		_, _ = c.socket.Write(refuse(hello.ID, failed).WebSocket())
		code := hub.CodeBadToken
		if failed.Temporary {
			code = hub.CodeInternal
		}
		c.reject(code, failed.Code)
		return false
	}
	c.caller = caller
	if wait, ok := c.server.frames.Allow(caller.key(), time.Now()); !ok {
		_, _ = c.socket.Write(refuse(hello.ID, rateLimited(wait)).WebSocket())
		c.reject(hub.CodeTooMany, codeRateLimited)
		return false
	}
	c.session = c.server.hub.NewSession(caller.User, caller.Session, (*transport)(c))
	if err := c.server.hub.Attach(c.session, accept(hello.ID, c.server.welcome(caller))); err != nil {
		c.session = nil
		if errors.Is(err, hub.ErrTooMany) {
			_, _ = c.socket.Write(refuse(hello.ID, errTooManyStreams).WebSocket())
			c.reject(hub.CodeTooMany, errTooManyStreams.Code)
		} else {
			c.reject(hub.CodeDrain, "drain")
		}
		return false
	}
	c.server.checks.attached(caller, before)
	return true
}

// errTooManyStreams is the error of a further stream of a user.
var errTooManyStreams = &Error{"too_many_streams", "the user has too many open streams; close one", true, time.Minute.Milliseconds()}

// codeNoHello closes a connection without a first frame.
const codeNoHello = 3003

// read reads a text message.
func (c *conn) read() ([]byte, bool) {
	// Reading ends when the connection is closed; a context costs memory.
	kind, data, err := c.ws.Read(context.Background())
	if err == nil && kind != websocket.MessageText {
		c.reject(int(websocket.StatusUnsupportedData), "send text")
		return nil, false
	}
	if err == nil && !utf8.Valid(data) { // encoding/json would replace what is invalid
		c.reject(int(websocket.StatusInvalidFramePayloadData), "not UTF-8")
		return nil, false
	}
	return data, err == nil
}

// reject closes a connection.
func (c *conn) reject(code int, reason string) { _ = c.ws.Close(websocket.StatusCode(code), reason) }

// transport writes the frames of the hub.
type transport conn

// Write implements hub.Transport. Several frames are joined in one write.
func (t *transport) Write(frames []*hub.Frame) bool {
	data := frames[0].WebSocket()
	if len(frames) > 1 {
		size := 0
		for _, f := range frames {
			size += len(f.WebSocket())
		}
		data = make([]byte, 0, size)
		for _, f := range frames {
			data = append(data, f.WebSocket()...)
		}
	}
	return t.socket.writeThen(data, t.ready)
}

func (t *transport) ready() { t.session.Written() }

// Close implements hub.Transport.
func (t *transport) Close(code int, reason string, last []*hub.Frame) {
	if len(last) > 0 {
		t.Write(last)
	}
	go func() { (*conn)(t).reject(code, reason) }()
}
