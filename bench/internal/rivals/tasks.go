package rivals

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/event"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/redis"
	"github.com/semelgo/semel/task"
)

// jobsDatabase is the database of the queues on PostgreSQL.
const jobsDatabase = "rivals_jobs"

// job is a task that may run again after a crash, as in all compared queues.
var job = semel.Define("create_payment", semel.OperationOptions[payment.Request]{
	Policy: semel.AtLeastOnce(), Retry: &semel.Retry{},
})

// tasks is Semel's queue.
type tasks struct {
	title  string
	server usage.Server
	pool   *pgxpool.Pool // nil: none
	empty  func(ctx context.Context) error
	engine semel.Runner
	worker *task.Worker
	seen   counting

	end     context.CancelFunc
	running sync.WaitGroup
	failed  error // of the worker, after its end
}

// counting counts the outcomes that were stored.
type counting struct {
	mu   sync.RWMutex
	done func()
}

func (c *counting) Observe(_ context.Context, e event.Event) {
	if e.Kind != event.Succeeded {
		return
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.done()
}

func newTasks(ctx context.Context, l *lab.Lab, server *lab.Server) (*tasks, error) {
	t := &tasks{title: "Semel", server: server.Usage}
	var err error
	if t.pool, err = server.Pool(ctx, l, jobsDatabase, 16); err != nil {
		return nil, err
	}
	if err := pgmigrate.Up(ctx, t.pool, pgmigrate.Options{}); err != nil {
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	s, err := postgres.New(t.pool, postgres.Options{})
	if err != nil {
		return nil, err
	}
	t.empty = func(ctx context.Context) error {
		_, err := t.pool.Exec(ctx, "truncate semel_records, semel_notes")
		return err
	}
	t.engine, err = semel.New(s, t.options())
	return t.withWorker(l, err)
}

// newRedisTasks is the queue on the Redis of asynq, which has each change on the disk before
// it answers.
func newRedisTasks(l *lab.Lab, server *redisServer) (*tasks, error) {
	t := &tasks{title: "Semel on Redis", server: server.usage}
	t.empty = func(ctx context.Context) error { return server.empty(ctx, "always") }
	client := driver.NewClient(&driver.Options{Addr: server.addr, PoolSize: callers})
	l.Closing(client.Close)
	s, err := redis.New(client, redis.Options{})
	if err != nil {
		return nil, err
	}
	t.engine, err = semel.NewRunner(s, t.options())
	return t.withWorker(l, err)
}

func (t *tasks) options() semel.Options {
	return semel.Options{Operations: []semel.Declared{job}, Observer: &t.seen}
}

// withWorker adds a worker to the engine, unless err says that there is none.
func (t *tasks) withWorker(l *lab.Lab, err error) (*tasks, error) {
	if err != nil {
		return nil, err
	}
	l.Closing(func() error { return t.engine.Close(context.Background()) })
	t.worker, err = task.New(t.engine, task.Options{Slots: slots, Poll: 20 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return t, task.Handle(t.worker, job, func(context.Context, payment.Request) (struct{}, error) { return struct{}{}, nil }, task.HandlerOptions{})
}

// slots is the number of jobs that Semel's worker runs at a time: the same as
// River's.
const slots = riverWorkers

func (t *tasks) name() string        { return t.title }
func (*tasks) batch() int            { return 1 }
func (t *tasks) usage() usage.Server { return t.server }

// checkpoint runs a checkpoint, so that no queue pays for another queue's log.
func (t *tasks) checkpoint(ctx context.Context) error {
	if _, err := t.pool.Exec(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (t *tasks) start(ctx context.Context, done func()) error {
	if err := t.empty(ctx); err != nil {
		return fmt.Errorf("remove all records: %w", err)
	}
	t.seen.mu.Lock()
	t.seen.done = done
	t.seen.mu.Unlock()
	ctx, t.end = context.WithCancel(ctx)
	t.running.Go(func() { t.failed = t.worker.Run(ctx) })
	return nil
}

func (t *tasks) add(ctx context.Context, keys []string) error {
	for _, key := range keys {
		call := job.Call(semel.ScopeOf("user-1000"), key, payment.Request{Amount: 4711, Currency: "EUR"})
		added, err := semel.Enqueue(ctx, t.engine, call, semel.EnqueueOptions{})
		if err == nil && !added {
			err = fmt.Errorf("key %s was there", key)
		}
		if err != nil {
			return err
		}
	}
	t.worker.Wake()
	return nil
}

// settle does nothing: an outcome is counted after it is stored.
func (*tasks) settle(context.Context) error { return nil }

func (t *tasks) stop(context.Context) error {
	t.end()
	t.running.Wait()
	return t.failed
}
