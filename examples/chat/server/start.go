package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// open opens the databases, creates missing tables, and assembles the server.
// The caller must close it.
func open(ctx context.Context, c config, log *slog.Logger, to hooks) (*app, error) {
	s := &app{config: c, log: log, woken: make(chan struct{}, 1)}
	if err := s.openDatabases(ctx); err != nil {
		s.closeDatabases()
		return nil, err
	}
	if err := errors.Join(nameBus(ctx, s), openMetrics(ctx, s)); err != nil {
		s.closeDatabases()
		return nil, err
	}
	if err := s.assemble(to); err != nil { //nolint:contextcheck // semel.New bounds its one question itself
		s.closeDatabases()
		return nil, err
	}
	return s, nil
}

func (s *app) assemble(to hooks) (err error) {
	s.writer = chatdb.Writer{Publish: s.publishChange, Revoked: s.publishRevoked}
	s.transact = s.waking(wrapped(to.Domain, transaction(s.domain.DB)))
	s.create = wrapped(to.Create, s.writer.CreateGroup)
	s.payments = newPayments(s.config.payments)
	s.operations = newOperations(s.config, probes{s.domain})
	s.engine, err = newEngine(wrapped(to.Records, s.records.store), semel.Options{
		Survive:    s.config.survive(),
		Observer:   wrapped(to.Observer, observerOf(s)),
		Tracer:     tracerOf(s),
		Operations: []semel.Declared{s.operations.signUp, s.operations.createGroup, s.operations.sendMessage, s.operations.boostGroup},
	})
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	if err := openQueue(s, to); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	if err := watchDatabases(s); err != nil {
		return fmt.Errorf("watch the databases: %w", err)
	}
	if s.bus, err = openBus(s.config.bus, s.config.busName, s.config.db); err != nil {
		return fmt.Errorf("open the bus: %w", err)
	}
	if s.relay, err = newRelay(s, to); err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	s.live = live.New(sessions{s}, streamBus{s.bus, func() { outbox.Kick(s.queue) }}, live.Options{Log: s.log, Address: s.config.addressOf})
	if s.sweepers, err = newSweepers(s); err != nil {
		return fmt.Errorf("start the sweepers: %w", err)
	}
	routes, err := s.routes()
	if err != nil {
		return fmt.Errorf("register routes: %w", err)
	}
	s.handler = wrapped(to.Edge, routes)
	return nil
}

// nameBus sets the default of flag -bus-name, the ID of the chat's database: servers of one chat have
// the same, and two chats on one broker have different ones.
func nameBus(ctx context.Context, s *app) error {
	if s.config.busName != "" {
		return nil
	}
	id, err := chatdb.DatabaseID(ctx, s.domain)
	s.config.busName = "chat_" + id
	return err
}

// newEngine makes an engine. At the start of a server the database may be slow or
// locked, so the first call may take up to startBound.
func newEngine(s store.TxStore[chatdb.Tx], o semel.Options) (*semel.Engine[chatdb.Tx], error) {
	for deadline := time.Now().Add(startBound); ; {
		e, err := semel.New(s, o)
		late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sqlite.ErrBusy)
		if !late || time.Now().After(deadline) {
			return e, err
		}
	}
}

// close waits for running attempts until ctx ends, and closes the databases.
func (s *app) close(ctx context.Context) error {
	s.live.Close()
	s.bus.Close()
	err := errors.Join(s.engine.Close(ctx), s.queue.Close(ctx))
	s.closeDatabases()
	return err
}

// openDatabases opens one or two databases and creates their tables.
func (s *app) openDatabases(ctx context.Context) (err error) {
	if s.domain, err = openDatabase(ctx, s.config.db, s.config); err != nil {
		return err
	}
	if err := makeTables(ctx, s.domain); err != nil {
		return fmt.Errorf("open %s: %w", s.domain.name, err)
	}
	s.records = s.domain
	if s.config.records != s.config.db {
		if s.records, err = openDatabase(ctx, s.config.records, s.config); err != nil {
			return err
		}
	}
	// In every mode the chat's own database holds the records of the queue.
	for _, db := range []*database{s.domain, s.records} {
		if err := db.migrate(ctx); err != nil { // both may be the same database
			return fmt.Errorf("open %s: %w", db.name, err)
		}
	}
	return nil
}

func (s *app) closeDatabases() {
	if s.metrics != nil {
		s.metrics.Close()
	}
	for _, db := range []*database{s.domain, s.records} {
		if db != nil {
			_ = db.Close() // both may be the same database
		}
	}
}
