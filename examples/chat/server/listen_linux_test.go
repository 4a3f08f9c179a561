package server

import (
	"net"
	"syscall"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// TestConnectionsOfVanishedClientsEnd: an accepted connection has the time limit of the listener.
func TestConnectionsOfVanishedClientsEnd(t *testing.T) {
	t.Parallel()
	listener := check.Must((&net.ListenConfig{Control: control}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	client := check.Must(new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String()))(t)
	defer client.Close()
	conn := check.Must(listener.Accept())(t)
	defer conn.Close()
	raw := check.Must(conn.(*net.TCPConn).SyscallConn())(t)
	var got int
	var failed error
	if err := raw.Control(func(fd uintptr) { got, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	check.Equal(t, got, int(vanishedAfter.Milliseconds()), "the time limit in ms")
}
