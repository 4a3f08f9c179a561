package retention_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

const generation = time.Hour

// rotations shows that a key has one effect in its generation and the next, and
// runs again only after that. Optimistic transactions do not lock the record, where
// the store allows this.
func rotations[Tx any](t *testing.T, s storetest.Subject[Tx], optimistic bool) {
	for name, o := range map[string]options{"by right": {Generation: generation}, "optimistic": {Generation: generation, Optimistic: true}} {
		if o.Optimistic && !optimistic {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Run("many keys at once", func(t *testing.T) { acrossBoundary(t, s, o) })
			t.Run("a late writer", func(t *testing.T) { lateWriter(t, s, o, true) })
			t.Run("a late writer that fails", func(t *testing.T) { lateWriter(t, s, o, false) })
			t.Run("a writer between its two records", func(t *testing.T) { rotationBetweenWrites(t, s, o) })
			t.Run("memory", func(t *testing.T) { rememberedFor(t, s, o) })
		})
	}
}

// clockedProcess is one process, whose clock the test sets.
type clockedProcess[Tx any] struct {
	*semel.Engine[Tx]

	s storetest.Subject[Tx]
}

// start is the beginning of a generation.
func start() time.Time { return time.UnixMilli(0).Add(500_000 * generation) }

func newClockedProcess[Tx any](t *testing.T, s storetest.Subject[Tx], clock time.Duration) *clockedProcess[Tx] {
	t.Helper()
	a := &clockedProcess[Tx]{s: s}
	var err error
	a.Engine, err = semel.New(s.Store, semel.Options{
		Survive: store.NoFailure, RecordTimeout: time.Minute,
		Clock: func() time.Time { return start().Add(clock) }, Wait: time.Minute,
	})
	check.Require(t, err, "New")
	t.Cleanup(func() {
		check.NoError(t, a.Close(context.Background()), "Close")
	})
	return a
}

type options = semel.OperationOptions[int]

// callUntilAnswered calls until the store is available.
func (a *clockedProcess[Tx]) callUntilAnswered(t *testing.T, op *semel.Operation[int], key string, v int, meanwhile func()) (got int, replayed bool) {
	t.Helper()
	for {
		got, replayed, err := semel.DoTx(t.Context(), a.Engine, op.Call(semel.Shared(), key, 0), func(ctx context.Context, tx Tx) (int, error) {
			if err := a.s.Effect(ctx, tx, op.Name()+key); err != nil {
				return 0, err
			}
			meanwhile()
			return v, nil
		})
		if err == nil {
			return got, replayed
		}
		if !errors.Is(err, semel.ErrInProgress) && !errors.Is(err, semel.ErrUnavailable) || t.Context().Err() != nil {
			t.Errorf("DoTx of %s = %v", key, err)
			return 0, false
		}
	}
}

// acrossBoundary calls many keys concurrently from both sides of a boundary.
func acrossBoundary[Tx any](t *testing.T, s storetest.Subject[Tx], o options) {
	op := semel.Define(t.Name(), o)
	askers := []*clockedProcess[Tx]{
		newClockedProcess(t, s, generation-time.Second), newClockedProcess(t, s, generation+time.Second), newClockedProcess(t, s, generation-2*time.Second),
		newClockedProcess(t, s, generation+generation/3),
	}
	const keys = 24
	answers := make([][]int, keys)
	var mu sync.Mutex
	var all sync.WaitGroup
	for k := range keys {
		for i, a := range askers {
			all.Go(func() {
				got, _ := a.callUntilAnswered(t, op, fmt.Sprint(k), i+1, func() {})
				mu.Lock()
				defer mu.Unlock()
				answers[k] = append(answers[k], got)
			})
		}
	}
	all.Wait()
	for k := range keys {
		check.Equal(t, s.Effects(op.Name()+fmt.Sprint(k)), 1, "key %d: effects", k)
		for _, got := range answers[k] {
			if got != answers[k][0] || got == 0 {
				t.Errorf("key %d was answered %v, want the same to all", k, answers[k])
			}
		}
	}
}

// lateWriter is still in a transaction of the last generation when another process
// works in the next one. If that process read only the last generation, both would
// win. When lateWriter fails, the other process has its effect.
func lateWriter[Tx any](t *testing.T, s storetest.Subject[Tx], o options, commits bool) {
	op := semel.Define(t.Name(), o)
	late, next := newClockedProcess(t, s, generation-time.Second), newClockedProcess(t, s, generation+time.Second)
	inside, asked, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	errLate := errors.New("too late")
	go func() {
		_, _, err := semel.DoTx(t.Context(), late.Engine, op.Call(semel.Shared(), "k", 0), func(ctx context.Context, tx Tx) (int, error) {
			err := s.Effect(ctx, tx, op.Name()+"k")
			once.Do(func() { close(inside); <-asked })
			if err == nil && !commits {
				err = errLate
			}
			return 1, err
		})
		ended <- err
	}()
	select {
	case <-inside:
	case err := <-ended:
		t.Fatalf("the late writer did not run: %v", err)
	}
	var all sync.WaitGroup
	all.Go(func() { next.callUntilAnswered(t, op, "k", 2, func() {}) })
	// On stores with a single writer the other process waits for this one.
	for range 100 {
		if s.Effects(op.Name()+"k") > 0 {
			break
		}
	}
	close(asked)
	if err := <-ended; err != nil && (commits || !errors.Is(err, errLate)) { // or the answer of the faster process
		t.Errorf("the late writer got %v", err)
	}
	all.Wait()
	check.Equal(t, s.Effects(op.Name()+"k"), 1, "a key: effects")
}

// rememberedFor calls a key until its record is purged.
func rememberedFor[Tx any](t *testing.T, s storetest.Subject[Tx], o options) {
	op := semel.Define(t.Name(), o)
	for _, tt := range []struct {
		clock    time.Duration
		value    int
		replayed bool
	}{
		{generation / 2, 1, false},
		{generation - 1, 1, true},
		{generation, 1, true},
		{2*generation - 1, 1, true},
		{2 * generation, 5, false},
		{4*generation - 1, 5, true},
	} {
		a := newClockedProcess(t, s, tt.clock)
		if got, replayed := a.callUntilAnswered(t, op, "k", tt.value, func() {}); got != tt.value || replayed != tt.replayed {
			t.Errorf("at %v it is answered %d, replayed %v; want %d, %v", tt.clock, got, replayed, tt.value, tt.replayed)
		}
	}
	check.Equal(t, s.Effects(op.Name()+"k"), 2, "the key: effects")
}
