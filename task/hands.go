package task

import (
	"slices"
	"sync"
)

// hands are goroutines that run functions, in the order they come, one after the
// other. Before a hand runs one it calls another to what still waits, because the
// function may take long; what takes no time is all run by the first, before the
// other has come. A goroutine for each function would have to make room for what it
// calls each time, which is a quarter of what a small task costs.
type hands struct {
	call chan struct{} // to one of those that are idle

	mu      sync.Mutex // guards what follows
	waiting []func()
	begun   int  // how many of these
	idle    int  // how many hands wait for a call
	called  bool // one was called, and has not come yet
}

func newHands() *hands { return &hands{call: make(chan struct{}, 1)} }

// do runs f beside its caller.
func (h *hands) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, f)
	h.another()
}

// soon is do, before what waits.
func (h *hands) soon(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun > 0 {
		h.begun--
		h.waiting[h.begun] = f
	} else {
		h.waiting = slices.Insert(h.waiting, 0, f)
	}
	h.another()
}

// another calls a hand if something waits and none is on its way.
func (h *hands) another() {
	switch {
	case h.called || len(h.waiting) == 0:
		return
	case h.idle > 0:
		h.idle--
		h.call <- struct{}{} // there is room: no other was called
	default:
		go h.work()
	}
	h.called = true
}

// work is one of the hands.
func (h *hands) work() {
	for more := true; more; _, more = <-h.call {
		for f := h.come(); f != nil; f = h.next() {
			f()
		}
	}
}

// come is next for a hand that was called.
func (h *hands) come() func() {
	h.mu.Lock()
	h.called = false
	h.mu.Unlock()
	return h.next()
}

// next is the function to run now, or nil: then the hand waits for a call.
func (h *hands) next() func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		h.idle++
		return nil
	}
	f := h.waiting[h.begun]
	h.waiting[h.begun] = nil
	if h.begun++; h.begun == len(h.waiting) {
		h.waiting, h.begun = h.waiting[:0], 0
	}
	h.another()
	return f
}

// dismiss ends all, once what they run has returned. Nothing may be done afterwards.
func (h *hands) dismiss() { close(h.call) }
