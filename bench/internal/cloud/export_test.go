package cloud

import (
	"context"
	"net"
	"time"
)

// Line is a line whose replies the test lets go.
type Line struct{ *line }

// NewLine returns one.
func NewLine() Line { return Line{&line{ready: make(chan waiter, 1)}} }

// Dial is what pools dial with.
func (n Line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return n.dial(ctx, network, addr)
}

// Waiting lets a reply go that waits, and reports whether there was one.
func (n Line) Waiting() bool {
	select {
	case w := <-n.ready:
		w.woken <- struct{}{}
		return true
	default:
		return false
	}
}

// Next lets the next reply go that waits.
func (n Line) Next() { w := <-n.ready; w.woken <- struct{}{} }

// Real dials with a line that keeps replies that long, until it is closed.
func Real(d time.Duration) (dial func(context.Context, string, string) (net.Conn, error), closing func()) {
	n := newLine(d)
	return n.dial, n.close
}

// SlowDisk makes the library that a slow server loads.
func SlowDisk(ctx context.Context, dir string) (string, error) { return slowDisk(ctx, dir, disk) }
