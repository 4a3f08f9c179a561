package server

import (
	"errors"
	"syscall"
	"time"
)

const (
	// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
	tcpUserTimeout = 0x12
	// vanishedAfter is how long a client may acknowledge nothing that was sent to it. Without it the
	// kernel keeps the connection of a client that has vanished for a quarter of an hour.
	vanishedAfter = 75 * time.Second
)

// control sets the options of the listening socket, which its connections inherit.
func control(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(vanishedAfter.Milliseconds()))
	})
	return errors.Join(err, failed)
}
