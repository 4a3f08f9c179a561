package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// topic is the forwarder's topic, and so part of the name of its table.
const topic = "outbox"

// forwarderSide is Watermill's outbox, with its defaults.
type forwarderSide struct{ pool *pgxpool.Pool }

func newForwarder(pool *pgxpool.Pool) (*forwarderSide, error) {
	f := &forwarderSide{pool}
	s, err := f.subscriber()
	if err != nil {
		return nil, err
	}
	return f, errors.Join(s.SubscribeInitialize(topic), s.Close())
}

func (f *forwarderSide) subscriber() (*sql.Subscriber, error) {
	s, err := sql.NewSubscriber(sql.BeginnerFromPgx(f.pool), sql.SubscriberConfig{
		SchemaAdapter: sql.DefaultPostgreSQLSchema{}, OffsetsAdapter: sql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true,
	}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make Watermill's subscriber: %w", err)
	}
	return s, nil
}

func (f *forwarderSide) fill(ctx context.Context, n int) error {
	if _, err := f.pool.Exec(ctx, "truncate watermill_"+topic+", watermill_offsets_"+topic); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error {
		p, err := sql.NewPublisher(sql.TxFromPgx(tx), sql.PublisherConfig{SchemaAdapter: sql.DefaultPostgreSQLSchema{}}, watermill.NopLogger{})
		if err != nil {
			return fmt.Errorf("make Watermill's publisher: %w", err)
		}
		to := forwarder.NewPublisher(p, forwarder.PublisherConfig{ForwarderTopic: topic})
		for range n {
			if err := to.Publish("orders", message.NewMessageWithContext(ctx, watermill.NewUUID(), body)); err != nil {
				return err
			}
		}
		return nil
	})
}

// counter is a publisher within the process.
type counter func()

// Publish counts messages.
func (c counter) Publish(_ string, all ...*message.Message) error {
	for range all {
		c()
	}
	return nil
}

// Close does nothing.
func (counter) Close() error { return nil }

func (f *forwarderSide) publish(ctx context.Context, published func(), done <-chan struct{}) error {
	s, err := f.subscriber()
	if err != nil {
		return err
	}
	forward, err := forwarder.NewForwarder(s, counter(published), watermill.NopLogger{}, forwarder.Config{ForwarderTopic: topic})
	if err != nil {
		return fmt.Errorf("make Watermill's forwarder: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forward.Run(context.WithoutCancel(ctx)) }()
	err = wait(ctx, done)
	return errors.Join(err, forward.Close(), <-ended)
}
