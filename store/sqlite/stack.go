package sqlite

import "runtime"

// growStack grows the stack of a new goroutine for the driver. SQLite calls itself
// deeply, and a stack that grows step by step is copied each time: a tenth of the
// cost of a statement.
//
//go:noinline
func growStack() {
	var room [8 << 10]byte
	runtime.KeepAlive(&room)
}
