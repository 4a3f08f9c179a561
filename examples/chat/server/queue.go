package server

import (
	"context"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/store"
)

// openQueue makes the engine of tasks and imported messages. In every mode their
// records are in the chat's own database, so that enqueuing a task and importing
// a message share a transaction with the chat's tables.
func openQueue(s *app, to hooks) (err error) {
	if s.inbox, err = newInbox(s.config); err != nil {
		return err
	}
	s.queue, err = newEngine(wrapped(to.Queue, s.domain.store), semel.Options{
		Survive: s.config.survive(), Observer: observerOf(s), Tracer: tracerOf(s), Operations: []semel.Declared{s.operations.welcome, s.operations.ticket.Operation(), s.inbox.Operation()},
	})
	if err != nil {
		return err
	}
	counter, _ := s.domain.store.(store.Counter) // all stores of package records count
	s.counts = counts{store: counter, operations: queued()}
	s.importer = newImporter(s, to)
	s.worker, err = newWorker(s, to)
	return err
}

// queued lists the operations of the queue.
func queued() []string { return []string{welcomeOperation, importOperation} }

// queueReport is the response of the queue's endpoint.
type queueReport struct {
	Operations []queueCount  `json:"operations"`
	Import     *importReport `json:"import,omitempty"`
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

// newImporter returns nil for a server without a broker.
func newImporter(s *app, to hooks) *importer {
	if s.config.amqp == "" {
		return nil
	}
	write := wrapped(to.Import, importMessage(s.writer))
	return &importer{
		url: s.config.amqp, queue: s.config.amqpQueue, lanes: lanesOf(s), log: s.log,
		handle: func(ctx context.Context, m inbox.Message[imported]) inbox.Result {
			return inbox.HandleTx(ctx, s.inbox, s.queue, m, func(ctx context.Context, tx chatdb.Tx, in imported) error {
				return write(ctx, tx, in)
			})
		},
	}
}
