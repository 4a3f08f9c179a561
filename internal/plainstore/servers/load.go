package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// Load are callers of an engine whose servers a test kills, and what they were answered.
type Load struct {
	t         testing.TB
	open      func() store.Store
	operation *semel.Operation[string]
	runs      sync.Map // number of runs by key

	done     atomic.Bool
	answered atomic.Int32
	callers  sync.WaitGroup
	answers  [8]map[string]string // by key, for each caller
}

// StartLoad starts callers, each of which calls with one new key after another. The store,
// which open returns for each process, survives a failover.
func StartLoad(tb testing.TB, open func() store.Store) *Load {
	tb.Helper()
	l := &Load{t: tb, open: open, operation: semel.Define("charge", semel.OperationOptions[string]{})}
	engine := l.engine()
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
					tb.Errorf("key %s: %v", key, err)
				}
			}
		})
	}
	return l
}

// engine is the engine of one process. It goes on recording an outcome for longer than a
// failover takes: after RecordTimeout a caller receives its outcome although it is not
// recorded.
func (l *Load) engine() semel.Runner {
	l.t.Helper()
	engine, err := semel.NewRunner(l.open(), semel.Options{Survive: store.Failover, RecordTimeout: time.Minute, Lease: time.Minute})
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
func (l *Load) call(engine semel.Runner, key string) (value string, err error) {
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

// AwaitAnswers waits for n more answers.
func (l *Load) AwaitAnswers(n int32) {
	l.t.Helper()
	before := l.answered.Load()
	realtest.Poll(l.t, "answers", func() bool { return l.answered.Load() >= before+n })
}

// End ends the load, and requires that no key ran twice and that another process gets the
// same answers.
func (l *Load) End() {
	l.t.Helper()
	l.done.Store(true)
	l.callers.Wait()
	l.runs.Range(func(key, n any) bool {
		if n.(*atomic.Int32).Load() > 1 {
			l.t.Errorf("key %s ran twice", key)
		}
		return true
	})
	other := l.engine()
	for _, of := range l.answers {
		for key, want := range of {
			if got, err := l.call(other, key); err != nil || got != want {
				l.t.Fatalf("key %s was answered %q, and afterwards %q, %v", key, want, got, err)
			}
		}
	}
	l.t.Logf("%d answers", l.answered.Load())
}
