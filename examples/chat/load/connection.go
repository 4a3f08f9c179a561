package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

const (
	subprotocol = "chat.v1.json"
	// maxFrame limits what a server sends at once. A subscription may answer with many
	// messages.
	maxFrame = 16 << 20
)

// connection is one WebSocket.
type connection struct {
	socket *websocket.Conn
	push   func(push)

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	closed  error
}

// push is a frame that the server sends by itself.
type push struct {
	Push    string  `json:"push"`
	Group   string  `json:"group"`
	Change  int64   `json:"change"`
	Message message `json:"message"`
}

// answer is the server's answer to a frame.
type answer struct {
	ID  int             `json:"id"`
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
		&websocket.DialOptions{Subprotocols: []string{subprotocol}})
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	socket.SetReadLimit(maxFrame)
	c := &connection{socket: socket, push: pushed, waiting: map[int]chan answer{}}
	go c.read(context.WithoutCancel(ctx))
	if err := c.request(ctx, "hello", map[string]any{"token": token}, nil); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// drop closes the socket without a closing handshake.
func (c *connection) drop() { _ = c.socket.CloseNow() }

var errLost = errors.New("the connection was lost")

func (c *connection) read(ctx context.Context) {
	var err error
	for err == nil {
		var text []byte
		if _, text, err = c.socket.Read(ctx); err == nil {
			err = c.frames(text)
		}
	}
	c.drop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = fmt.Errorf("%w: %w", errLost, err)
	for _, asked := range c.waiting {
		close(asked)
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
		asked := c.waiting[frame.ID]
		delete(c.waiting, frame.ID)
		c.mu.Unlock()
		if asked != nil {
			asked <- frame.answer
		}
	}
	return nil
}

// request sends a frame and waits for its answer.
func (c *connection) request(ctx context.Context, op string, fields map[string]any, out any) error {
	asked := make(chan answer, 1)
	c.mu.Lock()
	if c.closed != nil {
		defer c.mu.Unlock()
		return c.closed
	}
	c.last++
	id := c.last
	c.waiting[id] = asked
	c.mu.Unlock()
	frame := map[string]any{"id": id, "op": op}
	for k, v := range fields {
		frame[k] = v
	}
	text, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	if err := c.socket.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a, ok := <-asked:
		switch {
		case !ok:
			return errLost
		case a.Err != nil:
			return a.Err
		case out == nil:
			return nil
		default:
			return json.Unmarshal(a.OK, out)
		}
	}
}
