package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// newQueue makes the engine of tasks and imported messages. In every mode their
// records are in the chat's own database, so that enqueuing a task and importing
// a message share a transaction with the chat's tables.
func (s *app) newQueue(to hooks) (err error) {
	if s.inbox, err = newInbox(s.config); err != nil {
		return err
	}
	s.queue, err = newEngine(wrapped(to.Queue, s.domain.store), semel.Options{
		Survive: s.config.survive(), Observer: event.Slog(s.log), Operations: []semel.Declared{s.operations.welcome, s.inbox.Operation()},
	})
	if err != nil {
		return err
	}
	counter, _ := s.domain.store.(store.Counter) // all stores of package records count
	s.counts = counts{store: counter, operations: queued()}
	s.importer = s.newImporter(to)
	s.worker, err = s.newWorker(to)
	return err
}

// queued lists the operations of the queue.
func queued() []string { return []string{welcomeOperation, importOperation} }

// queueReport is the response of the queue's endpoint.
type queueReport struct {
	Operations []queueCount  `json:"operations"`
	Import     *importReport `json:"import,omitempty"`
}

// queueCount counts the records of an operation by state.
type queueCount struct {
	Operation string `json:"operation"`
	Waiting   int64  `json:"waiting"`
	Running   int64  `json:"running"`
	Done      int64  `json:"done"`
	Failed    int64  `json:"failed"`
	InDoubt   int64  `json:"in_doubt"`
}

// importReport counts one server's deliveries since it started.
type importReport struct {
	Queue      string `json:"queue"`
	Connected  bool   `json:"connected"`
	Delivered  int64  `json:"delivered"`
	Written    int64  `json:"written"`
	Duplicates int64  `json:"duplicates"`
	PutOff     int64  `json:"put_off"`
	Dead       int64  `json:"dead"`
}

func (s *app) showQueue(r *http.Request) (any, error) {
	counts, err := s.counts.get(r.Context())
	if err != nil {
		return nil, err
	}
	return queueReport{Operations: counts, Import: s.importer.report()}, nil
}

func (i *importer) report() *importReport {
	if i == nil {
		return nil
	}
	t := &i.importCounts
	return &importReport{
		Queue: i.queue, Connected: t.connected.Load(), Delivered: t.delivered.Load(), Written: t.written.Load(),
		Duplicates: t.duplicates.Load(), PutOff: t.delayed.Load(), Dead: t.dead.Load(),
	}
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
