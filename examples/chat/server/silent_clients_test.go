package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
)

// TestStopWithSilentClients: a server stops in its time although the clients of many streams neither
// read nor answer, as those that have vanished.
func TestStopWithSilentClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	const webSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: chat.v1.json\r\n"
	for i := range 10 {
		u := s.signIn(t, fmt.Sprint("user ", i))
		for range 20 {
			ticket := s.send(t, request{method: "POST", path: "/v1/tickets", as: u}).want(t, http.StatusCreated, "").value(t)["ticket"].(string)
			s.silent(t, "/v1/ws?ticket="+ticket, webSocket, "101 Switching Protocols")
			s.silent(t, "/v1/events", "Authorization: Bearer "+u.Token+"\r\n", "200 OK")
		}
	}
	s.stop() // fails if the server does not end with success
}

// silent opens a stream, reads the status, and nothing more.
func (s *localServer) silent(t *testing.T, path, header, status string) {
	t.Helper()
	address := strings.TrimPrefix(s.base, "http://")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, address, header); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, status) {
		t.Fatalf("%s: %q, %v; want %s", path, line, err, status)
	}
}
