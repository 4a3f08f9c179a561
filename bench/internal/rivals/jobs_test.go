package rivals_test

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/rivals"
)

func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	l, err := lab.New(io.Discard, true)
	if err != nil {
		t.Fatal(err)
	}
	l.Patience = 0 // nothing is repeated because of other load
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// All jobs are added, each under a key of its own, as many at a time as the queue
// takes, also when that does not divide them.
func TestAllJobsAreAddedOnce(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 100} {
		var mu sync.Mutex
		seen := make(map[string]bool)
		q := &rivals.Kept{Batch: batch, Add: func(keys []string) error {
			mu.Lock()
			defer mu.Unlock()
			if len(keys) == 0 || len(keys) > batch {
				t.Errorf("%d keys at a time, want 1 to %d", len(keys), batch)
			}
			for _, key := range keys {
				seen[key] = true
			}
			return nil
		}}
		const jobs = 1234
		ops, err := rivals.Race(t.Context(), newLab(t), q, jobs, 0)
		if err != nil || ops != jobs || len(seen) != jobs {
			t.Errorf("in batches of %d: %d operations with %d keys, %v; want %d", batch, ops, len(seen), err, jobs)
		}
		if q.Starts == 0 || q.Starts != q.Stops {
			t.Errorf("the queue was started %d times and stopped %d times", q.Starts, q.Stops)
		}
	}
}

// What a queue cannot take ends the race, and the queue is stopped all the same.
func TestAQueueThatFailsIsStopped(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	q := &rivals.Kept{Batch: 1, Add: func([]string) error { return broken }}
	if _, err := rivals.Race(t.Context(), newLab(t), q, 10, 0); !errors.Is(err, broken) {
		t.Errorf("Race = %v, want %v", err, broken)
	}
	if q.Starts != 1 || q.Stops != 1 {
		t.Errorf("the queue was started %d times and stopped %d times", q.Starts, q.Stops)
	}
}

// What is worked to warm up is not counted, and is over before the rest is added.
func TestWarmingUpIsNotCounted(t *testing.T) {
	t.Parallel()
	var added atomic.Int64
	q := &rivals.Kept{Batch: 3, Add: func(keys []string) error {
		added.Add(int64(len(keys)))
		return nil
	}}
	ops, err := rivals.Race(t.Context(), newLab(t), q, 10, time.Nanosecond)
	if err != nil || ops != 10 || added.Load() <= 10 {
		t.Errorf("%d operations of %d jobs, %v; want 10, and others before them", ops, added.Load(), err)
	}
}
