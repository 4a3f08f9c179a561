package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
)

// reply is what came of a request that somebody else waited for.
type reply struct {
	got *answer
	err error
}

// inflight is a request that is on its way.
type inflight struct {
	reply

	done chan struct{} // closed once there is a reply
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

// start sends a from another goroutine. What it returns waits for the answer.
func (t *caseRun) start(a request) func() *answer {
	f := t.sendAsync(a)
	return func() *answer { return t.await(f) }
}

// sendWhileHeld sends a while the first request for its op is held, and returns the
// answer. It must not come as far as the first has.
func (t *caseRun) sendWhileHeld(a request) *answer {
	got := t.trySendWhileHeld(a)
	if got == nil {
		t.failf("it ran while the first request was in progress")
	}
	return got
}

// trySendWhileHeld is as meanwhile, and returns nil when it comes as far.
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

// sendOverlapping sends a, and again while it runs, and returns both answers.
func (t *caseRun) sendOverlapping(a request) (first, second *answer) {
	t.hold(a.op)
	defer t.release(a.op)
	running := t.start(a)
	t.waitHeld(a.op)
	second = t.sendWhileHeld(a)
	t.release(a.op)
	return running(), second
}

// hold makes requests for op stop at the fixture's barrier, until release, or
// the end of the trial.
func (t *caseRun) hold(op string) { t.barrier(t.ctx, op, new(true)) }

func (t *caseRun) release(op string) {
	ctx, cancel := t.cleanupContext()
	defer cancel()
	t.barrier(ctx, op, new(false))
}

// waitHeld waits until a request for op has come to the barrier.
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

// sendAndLeave sends a over a connection and leaves the answer in it.
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

// reset ends a connection as a client does that is gone: what it was to be told
// is lost.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort: an ordinary end loses the answer too
	}
	conn.Close()
}

// pipelined sends a twice over one connection before it reads, and returns both
// answers. The second is nil when the server did not answer it.
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
		return first, nil // it may close the connection instead
	}
	t.record(a.op, m, second)
	return first, second
}
