package redis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/redis"
)

// load are callers of an engine, and what they were answered.
type load struct {
	t         *testing.T
	client    driver.UniversalClient
	options   redis.Options
	operation *semel.Operation[string]
	runs      sync.Map // number of runs by key

	done     atomic.Bool
	answered atomic.Int32
	callers  sync.WaitGroup
	answers  [8]map[string]string // by key, for each caller
}

// startLoad starts callers, each of which calls with one new key after another.
func startLoad(t *testing.T, client driver.UniversalClient) *load {
	t.Helper()
	l := &load{t: t, client: client, operation: semel.Define("charge", semel.OperationOptions[string]{})}
	s := newStore(t, client, redis.Options{Replicas: 1})
	l.options = redis.Options{Prefix: s.Prefix(), Replicas: 1}
	engine := l.engine(s)
	for caller := range l.answers {
		l.answers[caller] = make(map[string]string)
		l.callers.Go(func() {
			for i := 0; !l.done.Load(); i++ {
				key := fmt.Sprintf("%d-%d", caller, i)
				value, err := l.call(engine, key)
				if err == nil {
					l.answers[caller][key] = value
					l.answered.Add(1)
				} else if !errors.Is(err, semel.ErrInDoubt) {
					t.Errorf("key %s: %v", key, err)
				}
			}
		})
	}
	return l
}

// engine is the engine of one process. It goes on recording an outcome for longer than a
// failover takes: after RecordTimeout a caller receives its outcome although it is not
// recorded.
func (l *load) engine(s store.Store) semel.Runner {
	l.t.Helper()
	engine, err := semel.NewRunner(s, semel.Options{Survive: store.Failover, RecordTimeout: time.Minute, Lease: time.Minute})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), time.Minute)
		defer cancel()
		if err := engine.Close(ctx); err != nil {
			l.t.Errorf("Close: %v", err)
		}
	})
	return engine
}

// call calls with the key until there is a final answer. The answer tells which run it is of.
func (l *load) call(engine semel.Runner, key string) (value string, err error) {
	ended := realtest.Retry(l.t.Context(), func() bool {
		ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
		defer cancel()
		value, _, err = semel.Do(ctx, engine, l.operation.Call(semel.Shared(), key, key), func(context.Context) (string, error) {
			n, _ := l.runs.LoadOrStore(key, new(atomic.Int32))
			return fmt.Sprint(key, n.(*atomic.Int32).Add(1)), nil
		})
		return err == nil || errors.Is(err, semel.ErrInDoubt)
	})
	return value, errors.Join(err, ended)
}

// awaitAnswers waits for n more answers.
func (l *load) awaitAnswers(n int32) {
	l.t.Helper()
	before := l.answered.Load()
	realtest.Poll(l.t, "answers", func() bool { return l.answered.Load() >= before+n })
}

// end ends the load, and requires that no key ran twice and that another process gets the
// same answers.
func (l *load) end() {
	l.t.Helper()
	l.done.Store(true)
	l.callers.Wait()
	l.runs.Range(func(key, n any) bool {
		if n.(*atomic.Int32).Load() > 1 {
			l.t.Errorf("key %s ran twice", key)
		}
		return true
	})
	other := l.engine(newStore(l.t, l.client, l.options))
	for _, of := range l.answers {
		for key, want := range of {
			if got, err := l.call(other, key); err != nil || got != want {
				l.t.Fatalf("key %s was answered %q, and afterwards %q, %v", key, want, got, err)
			}
		}
	}
	l.t.Logf("%d answers", l.answered.Load())
}

// TestPrimariesOfAClusterAreKilled one after another, while callers use all of them. Their
// replicas replace them, and confirm again when the killed servers are back. No answer is
// lost, and no key runs twice.
func TestPrimariesOfAClusterAreKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	cluster := realtest.OwnRedisCluster(t)
	l := startLoad(t, cluster.Client(t))
	for i, primary := range cluster.Nodes[:3] {
		l.awaitAnswers(200)
		primary.Kill()
		cluster.AwaitPrimary(t, cluster.Nodes[3+i])
		primary.Start(t)
		l.awaitAnswers(200)
	}
	l.end()
}

// TestPrimaryUnderSentinelIsKilled likewise. One replica is lost first, so that the other one
// confirms each change.
func TestPrimaryUnderSentinelIsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	group := realtest.RedisSentinel(t)
	group.LoseReplica(t, group.Replicas[0])
	l := startLoad(t, group.Client(t))
	l.awaitAnswers(500)
	killed := group.Primary
	killed.Kill()
	promoted := group.AwaitPromoted(t)
	killed.Start(t)
	group.Follow(t, killed, promoted)
	l.awaitAnswers(500)
	l.end()
}
