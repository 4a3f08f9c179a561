package bus_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/semelgo/semel/examples/chat/bus"
)

// TestServerAway: while the bus's server cannot be reached, publishers neither wait for one another's
// attempts to connect, nor do all of them connect.
func TestServerAway(t *testing.T) {
	for name, connect := range map[string]func(address string) server{
		"rabbitmq": func(address string) server { return bus.NewRabbitMQ("amqp://u:p@"+address+"/", "chat") },
		"postgres": func(address string) server {
			p, err := bus.NewPostgres("postgres://u:p@"+address+"/chat?sslmode=disable", "chat")
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
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
			if err := b.Publish(ended, message(2)); !errors.Is(err, context.Canceled) {
				t.Errorf("Publish of a caller that has gone: %v", err)
			}
			select {
			case err := <-first:
				t.Errorf("the first attempt to connect ended meanwhile: %v", err)
			default:
			}
			_ = conn.Close()
			if err := <-first; err == nil {
				t.Error("an event was published nowhere")
			}
			for range 100 {
				if err := b.Publish(t.Context(), message(3)); err == nil {
					t.Error("an event was published nowhere")
				}
			}
		})
	}
}
