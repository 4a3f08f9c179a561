package task

import (
	"slices"
	"sync"
)

// goroutinePool are goroutines that run functions, in the order they come, one after the
// other. Before a hand runs one it calls another to what still waits, because the
// function may take long; what takes no time is all run by the first, before the
// other has come. A goroutine for each function would have to make room for what it
// calls each time, which is a quarter of what a small task costs.
type goroutinePool struct {
	wake chan struct{} // to one of those that are idle

	mu          sync.Mutex // guards what follows
	queue       []func()
	head        int  // how many of these
	idle        int  // how many hands wait for a call
	wakePending bool // one was called, and has not come yet
}

func newGoroutinePool() *goroutinePool { return &goroutinePool{wake: make(chan struct{}, 1)} }

// submit runs f beside its caller.
func (h *goroutinePool) submit(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, f)
	h.wakeWorker()
}

// submitFirst is do, before what waits.
func (h *goroutinePool) submitFirst(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.head > 0 {
		h.head--
		h.queue[h.head] = f
	} else {
		h.queue = slices.Insert(h.queue, 0, f)
	}
	h.wakeWorker()
}

// wakeWorker calls a hand if something waits and none is on its way.
func (h *goroutinePool) wakeWorker() {
	switch {
	case h.wakePending || len(h.queue) == 0:
		return
	case h.idle > 0:
		h.idle--
		h.wake <- struct{}{} // there is room: no other was called
	default:
		go h.worker()
	}
	h.wakePending = true
}

// worker is one of the hands.
func (h *goroutinePool) worker() {
	for more := true; more; _, more = <-h.wake {
		for f := h.nextAfterWake(); f != nil; f = h.next() {
			f()
		}
	}
}

// nextAfterWake is next for a hand that was called.
func (h *goroutinePool) nextAfterWake() func() {
	h.mu.Lock()
	h.wakePending = false
	h.mu.Unlock()
	return h.next()
}

// next is the function to run now, or nil: then the hand waits for a call.
func (h *goroutinePool) next() func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.idle++
		return nil
	}
	f := h.queue[h.head]
	h.queue[h.head] = nil
	if h.head++; h.head == len(h.queue) {
		h.queue, h.head = h.queue[:0], 0
	}
	h.wakeWorker()
	return f
}

// close ends all, once what they run has returned. Nothing may be done afterwards.
func (h *goroutinePool) close() { close(h.wake) }
