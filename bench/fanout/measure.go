package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"
)

// target is a server in a process of its own.
type target struct {
	kind    string
	in      io.WriteCloser
	out     *bufio.Reader
	addr    netip.AddrPort
	path    string
	clients *clients
	process *exec.Cmd
}

func start(ctx context.Context, kind string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &target{kind: kind, process: exec.CommandContext(ctx, self, "-serve", kind)}
	t.process.Stderr = os.Stderr
	if t.in, err = t.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	t.out = bufio.NewReader(out)
	var addr string
	if _, err := fmt.Fscanln(t.out, &addr, &t.path); err != nil {
		t.stop()
		return nil, err
	}
	t.addr, err = netip.ParseAddrPort(addr)
	return t, err
}

func (t *target) stop() {
	if t.clients != nil {
		t.clients.close()
	}
	_ = t.in.Close()
	_ = t.process.Process.Kill()
	_ = t.process.Wait() // it was killed
}

func (t *target) publish() error {
	_, err := io.WriteString(t.in, "p\n")
	return err
}

func (t *target) numbers(command string) (n numbers, err error) {
	if _, err := io.WriteString(t.in, command+"\n"); err != nil {
		return n, err
	}
	line, err := t.out.ReadBytes('\n')
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(line, &n)
}

func (t *target) connect(count int) (err error) {
	if t.clients, err = newClients(); err != nil {
		return err
	}
	subprotocol, first := "Sec-WebSocket-Protocol: chat.v1.json\r\n", []string{
		`{"id":1,"op":"hello","token":"t"}`, `{"id":2,"op":"subscribe","group":"g","after":0}`,
	}
	if t.kind != kindHub {
		subprotocol, first = "", []string{`{"id":1,"connect":{}}`}
	}
	for range count {
		if err := t.clients.connect(t.addr, t.path, subprotocol, first); err != nil {
			return fmt.Errorf("connection %d: %w", len(t.clients.conns), err)
		}
	}
	return nil
}

// measure runs one turn of a server.
func measure(ctx context.Context, kind string, o settings) (r result, err error) {
	t, err := start(ctx, kind)
	if err != nil {
		return r, err
	}
	defer t.stop()
	empty, err := t.numbers("g")
	if err != nil {
		return r, err
	}
	if err := t.connect(o.clients); err != nil {
		return r, err
	}
	if err := t.idle(ctx, o.seconds/2); err != nil {
		return r, err
	}
	idle, err := t.numbers("s")
	if err != nil {
		return r, err
	}
	collected, err := t.numbers("g")
	if err != nil {
		return r, err
	}
	n := float64(o.clients)
	r.memory = float64(idle.Resident-empty.Resident) / n
	r.heap = float64(collected.Heap-empty.Heap) / n
	r.goroutines = float64(idle.Goroutines-empty.Goroutines) / n
	if _, err = t.load(ctx, 1, o.seconds/4); err != nil { // warms up
		return r, err
	}
	if r.single, err = t.load(ctx, 1, o.seconds); err != nil {
		return r, err
	}
	if r.many, err = t.load(ctx, o.window, o.seconds); err != nil {
		return r, err
	}
	r.p50, r.p99, err = t.latency(ctx, o.seconds)
	return r, err
}

// idle receives nothing for a while.
func (t *target) idle(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := t.clients.receive(time.Until(end), func(int64) {}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// load publishes a message whenever fewer than window are on their way, and checks
// that every client has received every message.
func (t *target) load(ctx context.Context, window int, d time.Duration) (phase, error) {
	before, err := t.numbers("s")
	if err != nil {
		return phase{}, err
	}
	c := t.clients
	start, frames, first := time.Now(), c.frames, c.messages
	var published int64
	count := int64(len(c.conns))
	for {
		received := c.messages - first
		if time.Since(start) > d && received == published*count {
			break
		}
		if time.Since(start) > d+time.Minute || ctx.Err() != nil {
			return phase{}, fmt.Errorf("%d of %d messages were received", received, published*count)
		}
		for time.Since(start) < d && published-received/count < int64(window) {
			if err := t.publish(); err != nil {
				return phase{}, err
			}
			published++
		}
		if err := c.receive(100*time.Millisecond, func(int64) {}); err != nil {
			return phase{}, err
		}
	}
	took := time.Since(start)
	after, err := t.numbers("s")
	if err != nil {
		return phase{}, err
	}
	deliveries := float64(published * count)
	p := phase{rate: deliveries / took.Seconds(), cpu: time.Duration(float64(after.CPU-before.CPU) / deliveries)}
	p.joint = deliveries / float64(c.frames-frames)
	if writes := after.Writes - before.Writes; writes > 0 {
		p.joint = float64(after.Deliveries-before.Deliveries) / float64(writes)
	}
	return p, nil
}

// latency publishes two messages a second, and returns the time from there until
// the clients have read them.
func (t *target) latency(ctx context.Context, d time.Duration) (p50, p99 time.Duration, err error) {
	var all []time.Duration
	for range int(2 * d.Seconds()) {
		published := time.Now()
		if err := t.publish(); err != nil {
			return 0, 0, err
		}
		missing := int64(len(t.clients.conns))
		for missing > 0 || time.Since(published) < 500*time.Millisecond {
			err := t.clients.receive(max(0, 500*time.Millisecond-time.Since(published)), func(messages int64) {
				missing -= messages
				all = append(all, time.Since(published))
			})
			if err = errors.Join(err, ctx.Err()); err != nil {
				return 0, 0, err
			}
		}
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], nil
}
