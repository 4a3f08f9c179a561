package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	subprotocol = "chat.v1.json"
	// maxFrame limits what a server sends at once. A subscription may answer with many
	// messages.
	maxFrame = 16 << 20
	// answerTimeout is how long a server may take for an answer before the client drops the
	// connection.
	answerTimeout = 30 * time.Second
)

// connection is one WebSocket.
type connection struct {
	socket    *websocket.Conn
	push      func(push)
	heartbeat time.Duration // how often the server wants a frame
	ended     chan struct{} // closed when nothing is read any more

	mu      sync.Mutex
	last    int
	waiting map[string]*pendingRequest // by the JSON of its id
	closed  error
}

// pendingRequest is a frame that waits for its answer.
type pendingRequest struct {
	accepted func(ok json.RawMessage) error
	result   chan error
}

// push is a frame that the server sends by itself.
type push struct {
	Push    string  `json:"push"`
	Group   string  `json:"group"`
	Change  int64   `json:"change"`
	Message message `json:"message"`
	Within  int64   `json:"within_ms"`          // of "resync"
	After   int64   `json:"reconnect_after_ms"` // of "bye"
}

// answer is the server's answer to a frame.
type answer struct {
	ID  json.RawMessage `json:"id"`
	OK  json.RawMessage `json:"ok"`
	Err *refusal        `json:"err"`
}

// refusal is an error that the server sent.
type refusal struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Temporary bool   `json:"temporary"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// dial opens a WebSocket and authenticates it. Pushes are handed to the function in
// order, by one goroutine.
func dial(ctx context.Context, server, token string, pushed func(push)) (*connection, error) {
	socket, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server, "http")+"/v1/ws",
		&websocket.DialOptions{Subprotocols: []string{subprotocol}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	socket.SetReadLimit(maxFrame)
	c := &connection{socket: socket, push: pushed, ended: make(chan struct{}), waiting: map[string]*pendingRequest{}}
	hello := &pendingRequest{result: make(chan error, 1), accepted: func(ok json.RawMessage) error {
		var hello struct {
			Heartbeat int64 `json:"heartbeat_ms"`
		}
		err := json.Unmarshal(ok, &hello)
		c.heartbeat = time.Duration(max(1, hello.Heartbeat)) * time.Millisecond
		return err
	}}
	c.waiting[`"hello"`] = hello // the server answers the header
	go c.read(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := hello.wait(ctx, "hello"); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// drop closes the socket without a closing handshake. Nothing is pushed afterwards.
func (c *connection) drop() {
	_ = c.socket.CloseNow()
	<-c.ended
}

var errLost = errors.New("the connection was lost")

func (c *connection) read(ctx context.Context) {
	defer close(c.ended)
	var err error
	for err == nil {
		var text []byte
		if _, text, err = c.socket.Read(ctx); err == nil {
			err = c.frames(text)
		}
	}
	_ = c.socket.CloseNow()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = fmt.Errorf("%w: %w", errLost, err)
	for _, a := range c.waiting {
		a.result <- c.closed
	}
	c.waiting = nil
}

// frames handles the frames of one WebSocket message, one per line.
func (c *connection) frames(text []byte) error {
	for line := range bytes.Lines(text) {
		var frame struct {
			push
			answer
		}
		if err := json.Unmarshal(line, &frame); err != nil {
			return err
		}
		if frame.Push != "" {
			c.push(frame.push)
			continue
		}
		c.mu.Lock()
		a := c.waiting[string(frame.ID)]
		delete(c.waiting, string(frame.ID))
		c.mu.Unlock()
		switch {
		case a == nil:
		case frame.Err != nil:
			a.result <- frame.Err
		default:
			a.result <- a.accepted(frame.OK)
		}
	}
	return nil
}

// request sends a frame and waits for its answer. The goroutine that reads calls accepted
// with the answer before it handles later frames.
func (c *connection) request(ctx context.Context, op string, fields map[string]any, accepted func(ok json.RawMessage) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	a := &pendingRequest{accepted, make(chan error, 1)}
	c.mu.Lock()
	if c.closed != nil {
		defer c.mu.Unlock()
		return c.closed
	}
	c.last++
	id := c.last
	c.waiting[strconv.Itoa(id)] = a
	c.mu.Unlock()
	frame := map[string]any{"id": id, "op": op}
	maps.Copy(frame, fields)
	text, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	if err := c.socket.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return a.wait(ctx, op)
}

func (a *pendingRequest) wait(ctx context.Context, op string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("no answer to %s: %w", op, ctx.Err())
	case err := <-a.result:
		return err
	}
}

// ignored accepts any answer.
func ignored(json.RawMessage) error { return nil }
