package server

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// queueCount counts the records of an operation by state.
type queueCount struct {
	Operation string `json:"operation"`
	Waiting   int64  `json:"waiting"`
	Running   int64  `json:"running"`
	Done      int64  `json:"done"`
	Failed    int64  `json:"failed"`
	InDoubt   int64  `json:"in_doubt"`
}

// counts caches the counts of the queue. Counting reads all records, so it runs
// at most once per second, and takes at most a twentieth of the time.
type counts struct {
	store      store.Counter
	operations []string

	mu    sync.Mutex // guards the fields below; one request counts while the others wait
	last  []queueCount
	until time.Time
}

func (c *counts) get(ctx context.Context) ([]queueCount, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start := time.Now()
	if start.Before(c.until) {
		return c.last, nil
	}
	counted, err := task.Counts(ctx, c.store, c.operations...)
	if err != nil {
		return nil, err
	}
	c.last = make([]queueCount, len(counted))
	for i, n := range counted {
		c.last[i] = queueCount{
			Operation: n.Operation, Waiting: n.Waiting, Running: n.Running,
			Done: n.Succeeded, Failed: n.Failed, InDoubt: n.InDoubt,
		}
	}
	end := time.Now()
	c.until = end.Add(max(time.Second, 20*end.Sub(start)))
	return c.last, nil
}
