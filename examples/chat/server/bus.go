package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/examples/chat/bus"
)

// busNames are what RabbitMQ and PostgreSQL both accept.
var busNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

// The values of flag -bus that are no URL.
const (
	busAuto  = "auto"
	busLocal = "local"
)

// eventBus is a bus with a connection.
type eventBus interface {
	bus.Bus
	Close()
}

// localBus is a bus within this process.
type localBus struct{ bus.Local }

func (*localBus) Close() {}

// openBus returns the bus of flag -bus. It connects when it is used.
func openBus(address, name, db string) (eventBus, error) {
	if address == busAuto && isPostgres(db) {
		address = db
	}
	switch {
	case isPostgres(address):
		return bus.NewPostgres(address, name)
	case address == busAuto || address == busLocal:
		return new(localBus), nil
	default:
		return bus.NewRabbitMQ(address, name), nil
	}
}

// checkBus validates flags -bus and -bus-name. Its error contains no password.
func checkBus(address, name string) error {
	if name != "" && !busNames.MatchString(name) || strings.HasPrefix(name, "amq.") {
		return fmt.Errorf("invalid value %q for -bus-name: want 1 to 63 letters, digits, points, hyphens and underscores, and not amq. at the beginning", name)
	}
	if address == busAuto || address == busLocal || isPostgres(address) {
		return nil
	}
	if u, err := url.Parse(address); err == nil && (u.Scheme == "amqp" || u.Scheme == "amqps") {
		if _, err := amqp091.ParseURI(address); err == nil {
			return nil
		}
	}
	return errors.New("invalid value for -bus: want auto, local, amqp://user:password@host:port/vhost or postgres://user@host/name")
}

// eventWake is the type of the events that wake the relays of all servers.
const eventWake = "wake"

// streamBus is the bus as package live sees it: wake-ups are for the relay.
type streamBus struct {
	bus.Bus

	wake func()
}

// Subscribe implements [bus.Bus].
func (b streamBus) Subscribe(ctx context.Context, f func(bus.Event)) error {
	return b.Bus.Subscribe(ctx, func(e bus.Event) {
		if e.Type == eventWake {
			b.wake()
			return
		}
		f(e)
	})
}
