package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "memory")
	storetest.Run(t, func(testing.TB) storetest.Subject[*memory.Tx] {
		now := newClock()
		return subject(memory.New(memory.Options{Now: now.Now}), now.Advance)
	})
}

// The contract also holds with the real clock.
func TestContractWithTheRealClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Subject[*memory.Tx] {
		return subject(memory.New(memory.Options{}), nil)
	})
}

// effectLedger counts effects: each effect is a separate value, so that two effects
// count as two.
type effectLedger struct {
	store *memory.Store
	mu    sync.Mutex
	tried map[string]int // guarded by mu
}

func (l *effectLedger) Effect(_ context.Context, tx *memory.Tx, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[key]++
	return tx.Put(fmt.Sprintf("%s#%d", key, l.tried[key]), nil)
}

func (l *effectLedger) Effects(key string) int {
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
	l := &effectLedger{store: s, tried: make(map[string]int)}
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
