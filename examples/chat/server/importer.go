package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

// importer consumes messages from RabbitMQ and writes each of them once.
type importer struct {
	url, queue   string
	lanes        int
	log          *slog.Logger
	handle       func(ctx context.Context, m inbox.Message[imported]) inbox.Result
	importCounts importCounts
}

// importCounts counts deliveries since the server started.
type importCounts struct {
	connected                                     atomic.Bool
	delivered, written, duplicates, delayed, dead atomic.Int64
}

// Backoff after an error of the broker.
const (
	minAway = 250 * time.Millisecond
	maxAway = 15 * time.Second
)

// run imports until ctx ends. After an error of the broker it connects again.
func (i *importer) run(ctx context.Context) {
	for away := minAway; ctx.Err() == nil; away = min(2*away, maxAway) {
		consumed, err := i.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if consumed {
			away = minAway
		}
		i.log.LogAttrs(ctx, slog.LevelWarn, "import is interrupted",
			slog.String("queue", i.queue), slog.String("error", err.Error()))
		select {
		case <-ctx.Done():
		case <-time.After(away/2 + rand.N(away)):
		}
	}
}

// session imports over one connection until the connection or ctx ends. Running
// handlers then run to their end. The broker redelivers the other messages.
func (i *importer) session(ctx context.Context) (consumed bool, err error) {
	b, err := connect(ctx, i.url, i.queue)
	if err != nil {
		return false, err
	}
	defer b.close()
	deliveries, err := b.consume(i.lanes)
	if err != nil {
		return false, err
	}
	i.importCounts.connected.Store(true)
	defer i.importCounts.connected.Store(false)
	first := make(chan error, i.lanes)
	var lanes sync.WaitGroup
	for range i.lanes {
		lanes.Go(func() {
			if err := i.lane(ctx, b, deliveries); err != nil {
				b.close() // ends the other lanes, too
				first <- err
			}
		})
	}
	lanes.Wait()
	close(first)
	return true, <-first
}

var errDisconnected = errors.New("the broker has gone away")

// lane handles deliveries one at a time.
func (i *importer) lane(ctx context.Context, b *broker, deliveries <-chan amqp091.Delivery) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case d, ok := <-deliveries:
			if !ok || b.gone() {
				return errDisconnected
			}
			if err := i.deliver(context.WithoutCancel(ctx), b, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// deliver handles a delivery. It acknowledges the delivery only after the message
// was handled or moved to another queue.
func (i *importer) deliver(ctx context.Context, b *broker, d amqp091.Delivery) error {
	i.importCounts.delivered.Add(1)
	m, p := message(d)
	if p != nil {
		return i.bury(ctx, b, d, p.Detail)
	}
	r := i.handle(ctx, m)
	switch r.Decision {
	case inbox.Ack:
		if r.Duplicate {
			i.importCounts.duplicates.Add(1)
		} else {
			i.importCounts.written.Add(1)
		}
		return d.Ack(false)
	case inbox.Reject:
		return i.bury(ctx, b, d, reason(r))
	case inbox.Redeliver:
	}
	i.importCounts.delayed.Add(1)
	i.log.LogAttrs(ctx, slog.LevelWarn, "import of a message is put off", slog.String("id", r.ID.String()),
		slog.Duration("after", r.After), slog.String("error", r.Err.Error()))
	return b.putOff(ctx, d, r.After)
}

// bury moves a delivery to the dead-letter queue.
func (i *importer) bury(ctx context.Context, b *broker, d amqp091.Delivery, why string) error {
	i.importCounts.dead.Add(1)
	i.log.LogAttrs(ctx, slog.LevelError, "a message cannot be imported", slog.String("queue", i.queue), slog.String("reason", why))
	return b.bury(ctx, d, why)
}

// reason returns why a message cannot be handled, for the header of its dead
// letter.
func reason(r inbox.Result) string {
	var f *semel.Failure
	if errors.As(r.Err, &f) {
		return f.Message
	}
	return r.Err.Error()
}
