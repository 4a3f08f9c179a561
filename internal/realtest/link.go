package realtest

import (
	"bufio"
	"fmt"
	"net"
	"sync"
)

// link is one connection through a proxy, with its two sides.
type link struct {
	proxy  *Proxy
	client net.Conn
	server net.Conn
	done   chan struct{} // closed when the link is
	once   sync.Once

	session session

	mu       sync.Mutex
	answered int    // number of requests that the server answers with "ready"
	fault    *Fault // happens to the request whose number is broken
	broken   int
	stream   uint32 // that of the broken request; 0: broken is its number
	dropping bool   // the reply to that stream has begun
	over     bool   // the server sends no more replies
	key      string // the key with which the client can cancel a request
}

func newLink(p *Proxy, client, server net.Conn) *link {
	l := &link{proxy: p, client: client, server: server, done: make(chan struct{})}
	l.session = p.follow(client, server, delayedWriter{l, client})
	return l
}

// run moves bytes both ways until both sides have ended.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(l.requests)
	both.Go(l.replies)
	both.Wait()
	l.close()
}

func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	l.client.Close()
	l.server.Close()
}

// delayedWriter is one side of a link, written to only when the proxy lets bytes
// pass.
type delayedWriter struct {
	link *link
	to   net.Conn
}

// Write waits until bytes may pass.
func (g delayedWriter) Write(b []byte) (int, error) {
	g.link.proxy.pass(g.link.done)
	return g.to.Write(b)
}

// requests forwards the client's requests. When the client disconnects, so does the
// server's side, unless the server is to finish.
func (l *link) requests() {
	for {
		r, err := l.session.request()
		if err != nil || !l.ask(r) {
			break
		}
	}
	if l.isBroken() {
		return
	}
	l.proxy.pass(l.done)
	l.close()
}

// ask forwards one request, and reports whether the client may send more.
func (l *link) ask(r request) bool {
	if r.cancels != "" && l.proxy.leavesToFinish(r.cancels) {
		return false
	}
	var f *Fault
	if r.complete {
		f = l.proxy.take(r.text)
	}
	if f != nil && f.kind == cutBefore {
		reset(l.client)
		reset(l.server)
		f.happened()
		f.ended()
		return false
	}
	if !l.expect(r, f) {
		return false
	}
	_, err := delayedWriter{l, l.server}.Write(r.bytes)
	if f != nil && f.kind == cutAfter {
		reset(l.client)
		f.happened()
	}
	return f == nil && err == nil
}

// expect counts the request, and with it the reply that f is for. It reports
// whether there is a server that can answer; without one f is armed again.
func (l *link) expect(r request, f *Fault) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		if f != nil {
			l.proxy.rearm(f)
		}
		return false
	}
	if r.answered {
		l.answered++
	}
	if f != nil {
		l.fault, l.broken, l.stream = f, l.answered, r.stream
	}
	return true
}

// replies forwards the server's replies, up to the reply that a fault is for. That
// reply is read completely.
func (l *link) replies() {
	out := bufio.NewWriterSize(delayedWriter{l, l.client}, 1<<16)
	ready := 0 // replies that have ended
	for {
		frame, err := l.session.reply()
		if err != nil {
			break
		}
		if frame.key != "" {
			l.keep(frame.key)
		}
		eaten := l.dropsReply(ready+1, frame)
		if !eaten {
			if err := forward(out, frame); err != nil && !l.isBroken() {
				break
			}
		}
		if frame.last {
			if eaten && l.ends(frame) {
				break
			}
			ready++
		}
	}
	_ = out.Flush() // the client may have disconnected
	l.finish()
}

// forward forwards one frame. Frames that the server sent together are forwarded
// together.
func forward(out *bufio.Writer, frame replyFrame) error {
	if _, err := out.Write(frame.bytes); err != nil {
		return fmt.Errorf("write reply: %w", err)
	}
	if frame.more {
		return nil
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write reply: %w", err)
	}
	return nil
}

func (l *link) keep(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key = key
}

// isBrokenWith reports whether this is the link of that key, and a fault happens
// to it.
func (l *link) isBrokenWith(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault != nil && l.key == key
}

// dropsReply reports whether the reply of that number is the one that a fault is
// for, or whose last frame it is for. The first reply answers the message that
// opens the connection. After the first frame of a stream that is dropped, all are, because
// each frame of headers builds on the ones before.
func (l *link) dropsReply(number int, frame replyFrame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		return false
	}
	if l.stream != 0 {
		l.dropping = l.dropping || frame.stream == l.stream
		return l.dropping
	}
	return number >= l.broken && (frame.last || l.fault.kind != eatReady)
}

// ends reports whether a dropped frame ends the reply that the fault is for.
func (l *link) ends(frame replyFrame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream == 0 || frame.stream == l.stream
}

// isBroken reports whether a fault happens to this link. Then the client may be
// gone, and the server is left to finish all the same.
func (l *link) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault != nil
}

// finish closes both sides after the last reply, and ends waits for faults.
func (l *link) finish() {
	l.mu.Lock()
	l.over = true
	f := l.fault
	l.mu.Unlock()
	if f != nil {
		f.ended()
	}
	l.proxy.pass(l.done)
	l.close()
	if f != nil {
		f.happened()
	}
}
