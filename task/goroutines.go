package task

import (
	"slices"
	"sync"
)

// goroutinePool runs functions on reused goroutines, in the order of
// submission. Before a goroutine runs a function it wakes another one for the
// rest of the queue, because the function may take long. Short functions are
// all run by the first goroutine, before the second one starts. Reuse matters:
// a new goroutine has to grow its stack for each function, which costs a
// quarter of the time of a small task.
type goroutinePool struct {
	wake chan struct{} // wakes one idle goroutine

	mu          sync.Mutex // guards the fields below
	queue       []func()
	head        int  // index of the first function in queue that has not started
	idle        int  // number of goroutines that wait on wake
	wakePending bool // a goroutine has been woken or started and has not yet reached nextAfterWake
}

func newGoroutinePool() *goroutinePool { return &goroutinePool{wake: make(chan struct{}, 1)} }

// submit appends f to the queue.
func (h *goroutinePool) submit(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, f)
	h.wakeWorker()
}

// submitFirst puts f in front of the queue.
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

// wakeWorker wakes or starts a goroutine if the queue is not empty and no other
// goroutine is on its way.
func (h *goroutinePool) wakeWorker() {
	switch {
	case h.wakePending || len(h.queue) == 0:
		return
	case h.idle > 0:
		h.idle--
		h.wake <- struct{}{} // does not block: the buffer is empty while wakePending is false
	default:
		go h.worker()
	}
	h.wakePending = true
}

// worker runs functions until the pool is closed.
func (h *goroutinePool) worker() {
	for more := true; more; _, more = <-h.wake {
		for f := h.nextAfterWake(); f != nil; f = h.next() {
			f()
		}
	}
}

// nextAfterWake is next, for a goroutine that has just been woken or started.
func (h *goroutinePool) nextAfterWake() func() {
	h.mu.Lock()
	h.wakePending = false
	h.mu.Unlock()
	return h.next()
}

// next returns the function to run now. It returns nil if the queue is empty;
// the goroutine then waits on wake.
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

// close ends all goroutines after their current functions. Nothing may be
// submitted afterwards.
func (h *goroutinePool) close() { close(h.wake) }
