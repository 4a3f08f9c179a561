package rivals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

const (
	asynqRow     = "asynq on Redis, whose log is on the disk before it answers, 64 callers: unique tasks added one by one, and worked; Semel on PostgreSQL"
	asynqSameRow = "asynq on Redis, whose log is on the disk before it answers: the same; Semel on the same Redis"
	asynqLazyRow = "asynq on Redis, whose log is on the disk a second later: the same"

	asynqDiffers = "asynq 0.26.0; its tasks are unique until they are done (Unique), which is forgotten then, and Semel remembers a key for a day. " +
		"Redis has appendfsync always, so that what was answered is on the disk, as with PostgreSQL"
	asynqLazy = "Redis has appendfsync everysec, so that a crash of the machine loses tasks and ends of a second or two, which Semel does not"
)

// asynqQueue is asynq on a Redis server of the experiment.
type asynqQueue struct {
	redis       *redisServer
	sync        string // appendfsync
	concurrency int
	inspector   *asynq.Inspector

	client *asynq.Client // set while it runs
	server *asynq.Server
}

func newAsynq(l *lab.Lab, s *redisServer, sync string, concurrency int) *asynqQueue {
	q := &asynqQueue{redis: s, sync: sync, concurrency: concurrency}
	q.inspector = asynq.NewInspector(q.opt())
	l.Closing(q.inspector.Close)
	return q
}

func (q *asynqQueue) opt() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: q.redis.addr, PoolSize: callers}
}

func (q *asynqQueue) name() string        { return fmt.Sprintf("asynq, %s, %d", q.sync, q.concurrency) }
func (q *asynqQueue) batch() int          { return 1 }
func (q *asynqQueue) usage() usage.Server { return q.redis.usage }

func (q *asynqQueue) start(ctx context.Context, done func()) error {
	if err := q.redis.empty(ctx, q.sync); err != nil {
		return err
	}
	q.client = asynq.NewClient(q.opt()) // a new client: the old one caches which queues exist
	q.server = asynq.NewServer(q.opt(), asynq.Config{
		Concurrency: q.concurrency, LogLevel: asynq.FatalLevel, TaskCheckInterval: 20 * time.Millisecond,
	})
	handler := func(context.Context, *asynq.Task) error {
		done()
		return nil
	}
	if err := q.server.Start(asynq.HandlerFunc(handler)); err != nil {
		return fmt.Errorf("start asynq: %w", err)
	}
	return nil
}

func (q *asynqQueue) add(ctx context.Context, keys []string) error {
	for _, key := range keys {
		payload, err := json.Marshal(riverArgs{key, 4711, "EUR"})
		if err != nil {
			return err
		}
		_, err = q.client.EnqueueContext(ctx, asynq.NewTask("create_payment", payload), asynq.Unique(24*time.Hour))
		if err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the last completions are written, because asynq has no event
// for them.
func (q *asynqQueue) settle(ctx context.Context) error {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		info, err := q.inspector.GetQueueInfo("default")
		if err != nil {
			return fmt.Errorf("ask asynq how much is left: %w", err)
		}
		if info.Active+info.Pending == 0 {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (q *asynqQueue) stop(context.Context) error {
	q.server.Shutdown()
	if err := q.client.Close(); err != nil {
		return fmt.Errorf("close asynq's client: %w", err)
	}
	return nil
}

func againstAsynq(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	redis, err := startRedis(ctx, l)
	if err != nil {
		return nil, err
	}
	ours, err := newTasks(ctx, l, server)
	if err != nil {
		return nil, err
	}
	same, err := newRedisTasks(l, redis)
	if err != nil {
		return nil, err
	}
	durable := []queue{newAsynq(l, redis, "always", 16), newAsynq(l, redis, "always", callers)}
	lazy := []queue{newAsynq(l, redis, "everysec", 16), newAsynq(l, redis, "everysec", callers)}
	o, err := jobsOf(l).race(ctx, l, "tasks", ours.checkpoint, slices.Concat(durable, lazy, []queue{ours, same})...)
	if err != nil {
		return nil, err
	}
	found := []goal.Finding{
		o.Compared(asynqRow, ours.name(), durable[fastest(o, durable)].name(), contest.Throughput),
		o.Compared(asynqSameRow, same.name(), durable[fastest(o, durable)].name(), contest.Throughput),
		o.Compared(asynqLazyRow, ours.name(), lazy[fastest(o, lazy)].name(), contest.Throughput),
	}
	for i, said := range []string{asynqDiffers, asynqDiffers, asynqLazy} {
		found[i].Detail += fmt.Sprintf("; asynq works 16 or %d tasks at a time, whatever is faster; %s", callers, said)
	}
	return found, nil
}
