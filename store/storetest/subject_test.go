package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(1_000_000, c.ahead.Load()) }
func (c *clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// ledger counts effects: each is a value of its own, so that two count as two.
type ledger struct {
	store *memory.Store
	mu    sync.Mutex
	tried map[string]int // guarded by mu
}

func (l *ledger) Effect(_ context.Context, tx *memory.Tx, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[key]++
	return tx.Put(fmt.Sprintf("%s#%d", key, l.tried[key]), nil)
}

func (l *ledger) Effects(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for i := range l.tried[key] {
		if _, committed := l.store.Value(fmt.Sprintf("%s#%d", key, i+1)); committed {
			n++
		}
	}
	return n
}

func subject(s *memory.Store, advance func(time.Duration)) storetest.Subject[*memory.Tx] {
	l := &ledger{store: s, tried: make(map[string]int)}
	return storetest.Subject[*memory.Tx]{
		Store: s, Advance: advance, Effect: l.Effect, Effects: l.Effects,
		Batches: storetest.BatchesOf(s, batchOf(l.Effect)),
	}
}

// batchOf makes batches whose statements write effects.
func batchOf(effect func(ctx context.Context, tx *memory.Tx, key string) error) func(all []storetest.Statement) memory.Batch {
	return func(all []storetest.Statement) memory.Batch {
		b := make(memory.Batch, len(all))
		for i, s := range all {
			b[i] = func(tx *memory.Tx) error {
				if s.Fails {
					return errors.New("no such table")
				}
				return effect(context.Background(), tx, s.Effect)
			}
		}
		return b
	}
}
