package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
)

// reply is the result of a request that another goroutine sent.
type reply struct {
	got *answer
	err error
}

// inflight is a request in progress.
type inflight struct {
	reply

	done chan struct{} // closed when there is a reply
}

// sendAsync sends a from another goroutine.
func (t *caseRun) sendAsync(a request) *inflight {
	f := &inflight{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.got, f.err = t.try(a)
	}()
	return f
}

// isDone reports whether there is a reply.
func (f *inflight) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// await waits for the answer of f.
func (t *caseRun) await(f *inflight) *answer {
	<-f.done
	if f.err != nil {
		t.failf("no answer: %v", f.err)
	}
	return f.got
}

// start sends a from another goroutine. The returned function waits for the
// answer.
func (t *caseRun) start(a request) func() *answer {
	f := t.sendAsync(a)
	return func() *answer { return t.await(f) }
}

// sendWhileHeld sends a while the first request for its op is held at the
// barrier, and returns the answer. The request must not reach the barrier.
func (t *caseRun) sendWhileHeld(a request) *answer {
	got := t.trySendWhileHeld(a)
	if got == nil {
		t.failf("it ran while the first request was in progress")
	}
	return got
}

// trySendWhileHeld is like sendWhileHeld, but returns nil if the request
// reaches the barrier.
func (t *caseRun) trySendWhileHeld(a request) *answer {
	second, runs := t.sendAsync(a), false
	t.until("an answer while the first request is in progress", func() bool {
		runs = !second.isDone() && t.barrier(t.ctx, a.op, nil) > 1
		return runs || second.isDone()
	})
	if runs {
		return nil
	}
	return t.await(second)
}

// sendOverlapping sends a, and sends it again while the first is in progress.
// It returns both answers.
func (t *caseRun) sendOverlapping(a request) (first, second *answer) {
	t.hold(a.op)
	defer t.release(a.op)
	running := t.start(a)
	t.waitHeld(a.op)
	second = t.sendWhileHeld(a)
	t.release(a.op)
	return running(), second
}

// hold makes requests for op stop at the fixture's barrier, until release or
// the end of the case.
func (t *caseRun) hold(op string) {
	hold := true
	t.barrier(t.ctx, op, &hold)
}

func (t *caseRun) release(op string) {
	ctx, cancel := t.cleanupContext()
	defer cancel()
	hold := false
	t.barrier(ctx, op, &hold)
}

// waitHeld waits until a request for op has reached the barrier.
func (t *caseRun) waitHeld(op string) {
	t.until("a request to reach the barrier", func() bool { return t.barrier(t.ctx, op, nil) > 0 })
}

func (t *caseRun) barrier(ctx context.Context, op string, hold *bool) int {
	body := struct {
		Hold *bool `json:"hold,omitempty"`
	}{hold}
	var got struct {
		Held int `json:"held"`
	}
	a, err := t.control(ctx, "/barrier/"+op, body)
	if err == nil {
		err = json.Unmarshal(a.body, &got)
	}
	t.must(err)
	return got.Held
}

// sendAndLeave sends a over a connection and does not read the answer.
func (t *caseRun) sendAndLeave(a request) net.Conn {
	conn, err := t.server.dial(t.ctx)
	if err != nil {
		t.failf("connect: %v", err)
	}
	context.AfterFunc(t.ctx, func() { conn.Close() })
	if _, err := conn.Write(t.server.bytes(t.message(a), false)); err != nil {
		conn.Close()
		t.failf("send: %v", err)
	}
	return conn
}

// reset closes a connection abruptly, like a client that has disappeared.
// Unread data is lost.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort: a normal close loses the answer too
	}
	conn.Close()
}

// pipelined sends a twice over one connection before it reads, and returns both
// answers. The second is nil if the server did not answer it.
func (t *caseRun) pipelined(a request) (first, second *answer) {
	conn, err := t.server.dial(t.ctx)
	if err != nil {
		t.failf("connect: %v", err)
	}
	defer conn.Close()
	defer context.AfterFunc(t.ctx, func() { conn.Close() })()
	m := t.message(a)
	if _, err := conn.Write(append(t.server.bytes(m, true), t.server.bytes(m, false)...)); err != nil {
		t.failf("send: %v", err)
	}
	r := bufio.NewReader(conn)
	if first, err = readAnswer(r, m.method); err != nil {
		t.failf("no answer: %v", err)
	}
	t.record(a.op, m, first)
	second, err = readAnswer(r, m.method)
	if err != nil {
		return first, nil // the server may close the connection instead
	}
	t.record(a.op, m, second)
	return first, second
}
