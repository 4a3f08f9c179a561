// Package shop is a shop that takes payments: an HTTP endpoint, an external payment
// service, tasks, and messages over RabbitMQ, all on one PostgreSQL database.
package shop

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/inbox"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/task"
)

// grace is how long requests, tasks and messages that run may take to end when the
// server stops.
const grace = 10 * time.Second

//go:embed schema.sql
var schema string

// Exit codes of Main.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// shop is one server over its database. Any number of servers may share a database
// and a broker.
type shop struct {
	config     config
	pool       *pgxpool.Pool
	engine     *semel.Engine[pgx.Tx]
	operations operations
	worker     *task.Worker
	inbox      *inbox.Inbox[payment]
	payments   payments
	mail       mailer
	publisher  *publisher
	handler    http.Handler
	log        *slog.Logger
}

// Main serves until ctx ends. It returns the program's exit code, 2 for wrong flags
// and for a database that cannot be used.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseConfig(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(stdout, "usage: checkout [flags]")
		c.flags(stdout).PrintDefaults()
		return exitOK
	}
	if err == nil {
		return start(ctx, c, stdout, stderr)
	}
	_, _ = fmt.Fprintln(stderr, "checkout:", err)
	return exitUsage
}

func start(ctx context.Context, c config, stdout, stderr io.Writer) int {
	s, err := open(ctx, c, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "checkout:", err)
		return exitUsage
	}
	defer s.pool.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.addr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "checkout:", err)
		return exitUsage
	}
	_, _ = fmt.Fprintf(stdout, "checkout: serving http://%s\n", listener.Addr())
	if err := s.serve(ctx, listener); err != nil {
		_, _ = fmt.Fprintln(stderr, "checkout:", err)
		return exitError
	}
	return exitOK
}

// open connects to the database, creates the tables that are missing, and puts the
// server together.
func open(ctx context.Context, c config, log *slog.Logger) (*shop, error) {
	pool, err := pgxpool.New(ctx, c.db)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s := &shop{config: c, pool: pool, log: log, operations: define(c), publisher: &publisher{url: c.amqp}}
	if err := s.assemble(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

func (s *shop) assemble(ctx context.Context) error {
	if err := s.createTables(ctx); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	records, err := postgres.New(s.pool, postgres.Options{})
	if err != nil {
		return err
	}
	if s.inbox, err = newInbox(); err != nil {
		return err
	}
	s.engine, err = semel.New(records, semel.Options{
		Observer: event.Slog(s.log), Operations: s.declared(),
	})
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	if s.worker, err = task.New(s.engine, task.Options{Slots: consumers, Drain: grace / 2}); err != nil {
		return err
	}
	s.payments = payments{newService(s.config.payments, "v1", "charges")}
	s.mail = mailLog(s.log)
	if s.config.mail != nil {
		s.mail = mailService(s.config.mail)
	}
	if err := s.handleTasks(); err != nil {
		return err
	}
	pay, err := s.payOrder()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", pay)
	mux.Handle("GET /problems/", semelhttp.Problems())
	s.handler = mux
	return nil
}

// createTables lets one process at a time create tables: several may start at once.
func (s *shop) createTables(ctx context.Context) error {
	const lock = 7_041_969 // any number that nothing else in this database locks
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, lock); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, schema)
		return err
	})
	if err != nil {
		return err
	}
	return pgmigrate.Up(ctx, s.pool, pgmigrate.Options{})
}

// serve answers requests, runs tasks and ships orders until ctx ends. Then it lets
// what is running finish.
func (s *shop) serve(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		all  sync.WaitGroup
		errs = make(chan error, 2)
	)
	all.Go(func() { s.runWarehouse(ctx) })
	all.Go(func() {
		errs <- s.worker.Run(ctx)
		stop()
	})
	go func() { errs <- ignoreClosed(web.Serve(listener)); stop() }()
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := web.Shutdown(last)
	all.Wait()
	s.publisher.close()
	return errors.Join(err, <-errs, <-errs, s.engine.Close(last))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
