package cloud

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// line makes connections whose replies are delayed. It copies no bytes and needs no
// other process. A reply is delayed once: at the first read after a write. So it
// suits clients that send one or more requests and then read the responses.
type line struct {
	delay time.Duration
	ready chan waiter
	over  chan struct{} // closed when replies are no longer delayed
	done  sync.WaitGroup
	procs int
}

// waiter is a reply that has arrived and is delayed.
type waiter struct {
	until time.Time
	woken chan struct{}
}

// newLine starts the thread that delays replies. The timers of the Go runtime are
// too coarse, about a millisecond, while a program has little to do. So a thread
// sleeps until the oldest reply is due; all replies have the same delay. The thread
// occupies one processor of the runtime, so the runtime gets one more.
func newLine(delay time.Duration) *line {
	n := &line{delay: delay, ready: make(chan waiter, 4096), over: make(chan struct{})}
	n.procs = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n.procs + 1)
	n.done.Go(n.wake)
	return n
}

// close ends the delays. A store's own connections may live a few seconds longer;
// their replies are then not delayed.
func (n *line) close() {
	close(n.over)
	n.done.Wait()
	runtime.GOMAXPROCS(n.procs)
}

// keep delays a reply.
func (n *line) keep(w waiter) {
	select {
	case n.ready <- w:
	case <-n.over:
		return
	}
	select {
	case <-w.woken:
	case <-n.over:
	}
}

func (n *line) wake() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		var w waiter
		select {
		case w = <-n.ready:
		case <-n.over:
			return
		}
		if left := time.Until(w.until); left > 0 {
			sleep := syscall.NsecToTimespec(left.Nanoseconds())
			_ = syscall.Nanosleep(&sleep, nil) // interrupts are rare, and only make one reply early
		}
		w.woken <- struct{}{}
	}
}

func (n *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var dialer net.Dialer
	inner, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, line: n, woken: make(chan struct{}, 1)}, nil
}

// conn is a connection of a line.
type conn struct {
	net.Conn

	line        *line
	awaitsReply atomic.Bool // something was written and no reply was read yet
	woken       chan struct{}
}

func (c *conn) Write(b []byte) (int, error) {
	c.awaitsReply.Store(true)
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.awaitsReply.CompareAndSwap(true, false) {
		c.line.keep(waiter{time.Now().Add(c.line.delay), c.woken})
	}
	return n, err
}

// middle is the median.
func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
