package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

const (
	// consumers is how many messages are handled at a time.
	consumers = 4
	// reconnectDelay is how long the warehouse waits before it connects again.
	reconnectDelay = 500 * time.Millisecond
	// maxRequeueDelay is the longest that a consumer waits before it gives a message
	// back to the broker.
	maxRequeueDelay = 5 * time.Second
)

// newInbox returns the inbox of the warehouse: each announced payment is shipped once.
func newInbox() (*inbox.Inbox[payment], error) {
	return inbox.New("ship_order", inbox.Options[payment]{Group: "warehouse", Retention: retention})
}

// ship handles one message. The shipment and the record of the message commit
// together.
func (s *shop) ship(ctx context.Context, m inbox.Message[payment]) inbox.Result {
	return inbox.HandleTx(ctx, s.inbox, s.engine, m, func(ctx context.Context, tx pgx.Tx, p payment) error {
		_, err := tx.Exec(ctx, `insert into shipments (order_id) values ($1)`, p.Order)
		return err
	})
}

// runWarehouse consumes messages until ctx ends. It connects again after an error.
func (s *shop) runWarehouse(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.consume(ctx); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "the warehouse is not connected", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectDelay):
		}
	}
}

// consume handles messages over one connection. Messages that are being handled when
// ctx ends are handled to their end.
func (s *shop) consume(ctx context.Context) error {
	conn, ch, err := connect(ctx, s.config.amqp)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	if err := ch.Qos(2*consumers, 0, false); err != nil {
		return fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := ch.ConsumeWithContext(ctx, queue, "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	var (
		all  sync.WaitGroup
		errs = make(chan error, consumers)
	)
	for range consumers {
		all.Go(func() {
			for d := range deliveries {
				if err := s.deliver(ctx, d); err != nil {
					errs <- errors.Join(err, conn.Close())
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// deliver handles a delivery and then tells the broker what to do with it.
func (s *shop) deliver(ctx context.Context, d amqp091.Delivery) error {
	var p payment
	if err := json.Unmarshal(d.Body, &p); err != nil || d.MessageId == "" {
		s.log.LogAttrs(ctx, slog.LevelError, "a message cannot be read", slog.String("id", d.MessageId))
		return d.Reject(false) // to the dead letters
	}
	r := s.ship(context.WithoutCancel(ctx), inbox.Message[payment]{Producer: producer, ID: d.MessageId, Payload: p})
	switch r.Decision {
	case inbox.Ack:
		return d.Ack(false)
	case inbox.Reject:
		s.log.LogAttrs(ctx, slog.LevelError, "a message cannot be handled",
			slog.String("record", r.ID.String()), slog.String("error", r.Err.Error()))
		return d.Reject(false) // to the dead letters
	case inbox.Redeliver:
	}
	select {
	case <-ctx.Done():
	case <-time.After(min(r.After, maxRequeueDelay)):
	}
	return d.Nack(false, true)
}

// declared lists what the engine sweeps and what operators may redrive.
func (s *shop) declared() []semel.Declared {
	return []semel.Declared{
		s.operations.pay, s.operations.record, s.operations.receipt, s.operations.announce, s.inbox.Operation(),
	}
}
