package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/lab"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store/postgres"
)

// relay is Semel's outbox.
type relay struct {
	pool   *pgxpool.Pool
	engine *semel.Engine[pgx.Tx]
}

func newRelay(ctx context.Context, l *lab.Lab, pool *pgxpool.Pool) (*relay, error) {
	if err := pgmigrate.Up(ctx, pool, pgmigrate.Options{}); err != nil {
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	s, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return nil, err
	}
	e, err := semel.New(s, semel.Options{})
	if err != nil {
		return nil, err
	}
	l.Closing(func() error { return e.Close(context.Background()) })
	return &relay{pool, e}, nil
}

// relaySide has the events of a number of aggregates.
type relaySide struct {
	*relay

	aggregates int
}

func (r *relaySide) fill(ctx context.Context, n int) error {
	if _, err := r.pool.Exec(ctx, "truncate semel_outbox, semel_records"); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		for i := range n {
			err := outbox.AppendTx(ctx, r.engine, tx, outbox.Event{
				Topic: "orders", Aggregate: strconv.Itoa(i % r.aggregates), Type: "Changed", Payload: body,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *relaySide) publish(ctx context.Context, published func(), done <-chan struct{}) error {
	p, err := outbox.NewRelay(r.engine, outbox.PublisherFunc(func(context.Context, outbox.Message) error {
		published()
		return nil
	}), outbox.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	err = wait(ctx, done)
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	s, err := outbox.StatsOf(context.WithoutCancel(ctx), r.engine)
	if err == nil && s.Events > 0 {
		err = fmt.Errorf("%d events were published and not removed", s.Events)
	}
	return err
}
