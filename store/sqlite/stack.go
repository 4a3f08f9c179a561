package sqlite

import "runtime"

// growStack makes room on the stack of a new goroutine for what the driver needs.
// SQLite calls itself deeply, and a stack that grows on the way is copied each time
// with all that is on it: a tenth of what a single statement costs.
//
//go:noinline
func growStack() {
	var room [8 << 10]byte
	runtime.KeepAlive(&room)
}
