package realtest_test

import (
	"net"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestPortsAreReserved: a program can listen on a free address, and until this process ends, no
// other process of the tests gets its port.
func TestPortsAreReserved(t *testing.T) {
	t.Parallel()
	addr := realtest.FreeAddr(t)
	var listen net.ListenConfig
	check.Require(t, check.Must(listen.Listen(t.Context(), "tcp", addr))(t).Close())
	reserved, err := listen.ListenPacket(t.Context(), "udp", addr)
	if err == nil {
		reserved.Close()
		t.Errorf("%s is not reserved", addr)
	}
}
