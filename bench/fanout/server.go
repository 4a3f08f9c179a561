package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/centrifugal/centrifuge"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/live"
)

// The servers that are compared.
const (
	kindHub            = "hub"
	kindCentrifuge     = "centrifuge"
	kindCentrifugeBest = "centrifuge-best" // with its options for little memory and batches
)

func kinds() []string { return []string{kindHub, kindCentrifuge, kindCentrifugeBest} }

// numbers are what a server reports about itself.
type numbers struct {
	CPU        time.Duration
	Resident   int64
	Heap       int64 // in use, with stacks
	Goroutines int
	Deliveries int64 // zero: the client counts
	Writes     int64
}

// server is one of the kinds.
type server struct {
	path    string
	handler http.Handler
	publish func() error
	stats   func(*numbers)
}

// message is the payload of all messages: 256 bytes of text.
var message = strings.Repeat("0123456789abcdef", 16) //nolint:gochecknoglobals // a constant

// serveKind serves until its input ends. It prints its address. Each line of input
// is a command: p publishes one message, s reports numbers, g collects garbage first.
func serveKind(ctx context.Context, kind string, in io.Reader, out io.Writer) error {
	s, err := newServer(ctx, kind)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(s.path, s.handler)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	fmt.Fprintf(out, "%s %s\n", l.Addr(), s.path)
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		switch commands.Text() {
		case "p":
			if err := s.publish(); err != nil {
				return err
			}
		case "g":
			runtime.GC()
			debug.FreeOSMemory()
			fallthrough
		case "s":
			if err := json.NewEncoder(out).Encode(s.numbers()); err != nil {
				return err
			}
		}
	}
	return commands.Err()
}

func (s *server) numbers() numbers {
	var n numbers
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		n.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	n.Heap = int64(memory.HeapAlloc + memory.StackInuse)
	n.Goroutines = runtime.NumGoroutine()
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
		n.Resident = pages * int64(os.Getpagesize())
	}
	s.stats(&n)
	return n
}

func newServer(ctx context.Context, kind string) (*server, error) {
	switch kind {
	case kindHub:
		return newHub(ctx), nil
	case kindCentrifuge:
		return newCentrifuge(centrifuge.ConnectReply{}, centrifuge.WebsocketConfig{})
	case kindCentrifugeBest:
		return newCentrifuge(
			centrifuge.ConnectReply{WriteDelay: 10 * time.Millisecond, WriteWithTimer: true, ReplyWithoutQueue: true},
			centrifuge.WebsocketConfig{UseWriteBufferPool: true, ReadBufferSize: 512},
		)
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
}

// app accepts every client as another user.
type app struct{ users chan int64 }

func (a app) Authenticate(context.Context, live.Credentials) (live.Identity, error) {
	user := <-a.users
	a.users <- user + 1
	return live.Identity{User: user, Session: strconv.FormatInt(user, 10)}, nil
}

func (app) CatchUp(context.Context, live.Identity, string, int64) (live.CatchUp, error) {
	return live.CatchUp{Recovered: true, Messages: json.RawMessage("[]")}, nil
}

func (app) Send(context.Context, live.Identity, string, string, string) (json.RawMessage, error) {
	return nil, fmt.Errorf("not measured")
}

func (app) OpenSessions(_ context.Context, all []string) ([]string, error) { return all, nil }

func (app) CoMembers(context.Context, int64) ([]int64, error) { return nil, nil }

func (app) MarkRead(context.Context, live.Identity, string, int64) (int64, bool, error) {
	return 0, false, nil
}

func newHub(ctx context.Context) *server {
	a := app{make(chan int64, 1)}
	a.users <- 1
	b := &bus.Local{}
	s := live.New(a, b, live.Options{Heartbeat: time.Hour, Lease: time.Hour})
	go func() { _ = s.Run(ctx) }()
	change := 0
	return &server{
		path: "/v1/ws", handler: http.HandlerFunc(s.WebSocket),
		publish: func() error {
			change++
			e, err := bus.GroupEvent(strconv.Itoa(change), "message", "g",
				fmt.Appendf(nil, `{"push":"message","group":"g","change":%07d,"text":"%s"}`, 1_000_000+change, message))
			if err != nil {
				return err
			}
			return b.Publish(ctx, e)
		},
		stats: func(n *numbers) { n.Deliveries, n.Writes = s.Stats().Delivered, s.Stats().Writes },
	}
}

func newCentrifuge(reply centrifuge.ConnectReply, config centrifuge.WebsocketConfig) (*server, error) {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return nil, err
	}
	reply.Credentials = &centrifuge.Credentials{UserID: "u"}
	reply.Subscriptions = map[string]centrifuge.SubscribeOptions{"all": {}}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) { return reply, nil })
	node.OnConnect(func(*centrifuge.Client) {})
	if err := node.Run(); err != nil {
		return nil, err
	}
	config.PingInterval = -1
	data := fmt.Appendf(nil, `{"text":"%s"}`, message)
	return &server{
		path: "/connection/websocket", handler: centrifuge.NewWebsocketHandler(node, config),
		publish: func() error {
			_, err := node.Publish("all", data)
			return err
		},
		stats: func(*numbers) {},
	}, nil
}
