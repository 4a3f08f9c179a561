package rivals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// riverQueue is River on PostgreSQL, with the settings of its own benchmark.
type riverQueue struct {
	called string
	many   int // jobs added at a time
	server *lab.Server
	pool   *pgxpool.Pool

	client  *river.Client[pgx.Tx]
	cancel  func() // of the subscription
	reading sync.WaitGroup
}

// The settings of River's own benchmark, the fastest that its authors found.
const (
	riverCooldown = 2 * time.Millisecond
	riverPoll     = 20 * time.Millisecond
	riverWorkers  = 2000
)

// riverArgs is unique as a whole.
type riverArgs struct {
	Key      string `json:"key"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Kind is the name of the job.
func (riverArgs) Kind() string { return "create_payment" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
}

// Work does nothing.
func (*riverWorker) Work(context.Context, *river.Job[riverArgs]) error { return nil }

func newRiver(ctx context.Context, l *lab.Lab, server *lab.Server, called string, many, conns int) (*riverQueue, error) {
	pool, err := server.Pool(ctx, l, jobsDatabase, conns)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent()})
	if err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	return &riverQueue{called: called, many: many, server: server, pool: pool}, nil
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (q *riverQueue) name() string        { return q.called }
func (q *riverQueue) batch() int          { return q.many }
func (q *riverQueue) usage() usage.Server { return q.server.Usage }

func (q *riverQueue) start(ctx context.Context, done func()) error {
	if _, err := q.pool.Exec(ctx, "truncate river_job"); err != nil {
		return fmt.Errorf("empty the table: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{})
	var err error
	q.client, err = river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		FetchCooldown: riverCooldown, FetchPollInterval: riverPoll,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}},
		Workers: workers, Logger: silent(),
	})
	if err != nil {
		return fmt.Errorf("make River's client: %w", err)
	}
	events, cancel := q.client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: 100_000, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	q.cancel = cancel
	q.reading.Go(func() {
		for range events {
			done()
		}
	})
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start River: %w", err)
	}
	return nil
}

func (q *riverQueue) add(ctx context.Context, keys []string) error {
	opts := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
	if len(keys) == 1 {
		r, err := q.client.Insert(ctx, riverArgs{keys[0], 4711, "EUR"}, opts)
		if err == nil && r.UniqueSkippedAsDuplicate {
			err = errors.New("the job was there")
		}
		return err
	}
	many := make([]river.InsertManyParams, len(keys))
	for i, key := range keys {
		many[i] = river.InsertManyParams{Args: riverArgs{key, 4711, "EUR"}, InsertOpts: opts}
	}
	_, err := q.client.InsertMany(ctx, many)
	return err
}

// settle does nothing: River reports a job after its end is stored.
func (*riverQueue) settle(context.Context) error { return nil }

func (q *riverQueue) stop(ctx context.Context) error {
	err := q.client.Stop(context.WithoutCancel(ctx))
	q.cancel()
	q.reading.Wait()
	if err != nil {
		return fmt.Errorf("stop River: %w", err)
	}
	return nil
}
