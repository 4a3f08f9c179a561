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

// line makes connections whose replies come later than they would. It costs next
// to nothing but the wait: no byte is copied, and no other process is in between.
//
// A reply waits once: the first bytes that are read after something was written.
// So it is for those who write a request, or many, and then read what is answered.
type line struct {
	delay time.Duration
	ready chan waiter
	over  chan struct{} // closed when no reply is kept waiting any more
	done  sync.WaitGroup
	procs int
}

// waiter is a reply that has come and waits.
type waiter struct {
	until time.Time
	woken chan struct{}
}

// newLine starts what keeps replies waiting. The runtime's timers cannot: they are
// as exact as a millisecond while there is little to do. So a thread sleeps until
// the first reply that waits is due; they wait equally long, so that is the one
// that came first. The thread keeps a processor of the runtime's for itself, which
// is given one more.
func newLine(delay time.Duration) *line {
	n := &line{delay: delay, ready: make(chan waiter, 4096), over: make(chan struct{})}
	n.procs = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n.procs + 1)
	n.done.Go(n.wake)
	return n
}

// close ends it. A store's own connections may outlive it by seconds: their replies
// come at once then.
func (n *line) close() {
	close(n.over)
	n.done.Wait()
	runtime.GOMAXPROCS(n.procs)
}

// keep has a reply wait.
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
			_ = syscall.Nanosleep(&sleep, nil) // what interrupts it is rare, and makes one reply early
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

// conn is one of a line's connections.
type conn struct {
	net.Conn

	line  *line
	asked atomic.Bool // something was written whose reply has not come
	woken chan struct{}
}

func (c *conn) Write(b []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.asked.CompareAndSwap(true, false) {
		c.line.keep(waiter{time.Now().Add(c.line.delay), c.woken})
	}
	return n, err
}

// middle is the median.
func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
