package server

import (
	"net"
	"syscall"
	"testing"
)

// TestConnectionsOfVanishedClientsEnd: an accepted connection has the time limit of the listener.
func TestConnectionsOfVanishedClientsEnd(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{Control: control}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	var failed error
	if err := raw.Control(func(fd uintptr) { got, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got != int(vanishedAfter.Milliseconds()) {
		t.Errorf("the time limit is %d ms, want %v", got, vanishedAfter)
	}
}
