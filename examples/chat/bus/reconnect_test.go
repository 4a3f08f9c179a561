package bus_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/internal/check"
)

// TestServerAway: while the bus's server cannot be reached, publishers neither wait for one another's
// attempts to connect, nor do all of them connect.
func TestServerAway(t *testing.T) {
	for name, connect := range map[string]func(address string) server{
		"rabbitmq": func(address string) server { return bus.NewRabbitMQ("amqp://u:p@"+address+"/", "chat") },
		"postgres": func(address string) server {
			return check.Must(bus.NewPostgres("postgres://u:p@"+address+"/chat?sslmode=disable", "chat"))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
			conns, n := make(chan net.Conn), 0 // the first connection; how many there were
			var accepting sync.WaitGroup
			accepting.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					if n++; n > 1 {
						_ = conn.Close()
						continue
					}
					conns <- conn
				}
			})
			t.Cleanup(func() {
				_ = l.Close()
				accepting.Wait()
				if n > 10 {
					t.Errorf("102 events made %d connections", n)
				}
			})
			b := closed(t, connect(l.Addr().String()))
			first := make(chan error, 1)
			go func() { first <- b.Publish(t.Context(), message(1)) }()
			conn := <-conns // and no answer
			ended, end := context.WithCancel(t.Context())
			end()
			check.ErrorIs(t, b.Publish(ended, message(2)), context.Canceled, "Publish of a caller that has gone")
			select {
			case err := <-first:
				t.Errorf("the first attempt to connect ended meanwhile: %v", err)
			default:
			}
			_ = conn.Close()
			check.Fails(t, <-first, "Publish without a server")
			for range 100 {
				check.Fails(t, b.Publish(t.Context(), message(3)), "Publish without a server")
			}
		})
	}
}
