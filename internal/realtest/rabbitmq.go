package realtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// rabbitmq is RabbitMQ, tried with 3.10; the user of an address in the environment
// must be allowed to configure queues and exchanges.
func rabbitmq() engine {
	return engine{
		name:    "rabbitmq",
		env:     "SEMEL_TEST_RABBITMQ_URL",
		program: "rabbitmq-server",
		wrapped: true,
		places: []string{
			"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
			"/opt/homebrew/opt/rabbitmq/sbin", "/usr/local/opt/rabbitmq/sbin",
		},
		packages: "rabbitmq-server",
	}
}

var sharedRabbitMQ shared //nolint:gochecknoglobals // one server for all tests of a binary is its purpose

// RabbitMQ gives the test the server that all tests of this binary share. It may
// not be killed or stopped; see [OwnRabbitMQ]. Ask it for a [Broker.Queue]: what
// has another name is everybody's. Starting it takes 4 seconds of a processor.
func RabbitMQ(tb testing.TB) *Broker {
	tb.Helper()
	return &Broker{sharedRabbitMQ.handle(tb, rabbitmq(), newNode)}
}

// OwnRabbitMQ starts a server for this test alone, which it may kill, stop and
// pause, and which ends with it. Settings are "name = value", as in a
// rabbitmq.conf. A server in the environment cannot be this test's own, so it
// takes a program on this machine.
func OwnRabbitMQ(tb testing.TB, settings ...string) *Broker {
	tb.Helper()
	return &Broker{ownHandle(tb, rabbitmq(), newNode, settings)}
}

// Broker is a RabbitMQ that answers on its address. What ends or pauses it is for
// a server of [OwnRabbitMQ]; on another it fails the test.
type Broker struct{ handle }

// Queue returns a name that no other test has, for a queue, an exchange, or both.
// It declares neither. At the end of the test everything with that name is deleted,
// even if it is in use.
func (b *Broker) Queue(tb testing.TB) string {
	tb.Helper()
	name := "t_" + strings.ToLower(rand.Text())
	tb.Cleanup(func() {
		if b.own != nil { // with its own server it is gone anyway
			return
		}
		check.NoError(tb, b.remove(context.WithoutCancel(tb.Context()), name), "delete %s", name)
	})
	return name
}

// remove deletes what has the name. That there is nothing is no error.
func (b *Broker) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	conn, err := dialAMQP(ctx, b.url)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return errors.Join(fmt.Errorf("open channel: %w", err), conn.Close())
	}
	_, queue := ch.QueueDelete(name, false, false, false)
	exchange := ch.ExchangeDelete(name, false, false)
	return errors.Join(queue, exchange, conn.Close())
}

// Stop stops the server in an orderly way and returns when it has ended, within
// 60 seconds. It may be called from any goroutine.
func (b *Broker) Stop() {
	b.t.Helper()
	b.do("stop", func(p *instance) error { return p.stop(syscall.SIGTERM) })
}
