// Package server is a stub of a payment service. It writes a charge and the record
// of its key in one transaction, so that a retried request is charged once,
// whichever process is killed.
package server

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/metricsserver"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelotel"
	"github.com/semelgo/semel/store/sqlite"
)

// startBound limits how long a starting service waits for its database.
const startBound = 30 * time.Second

// grace is how long running requests may take to end when the server stops.
const grace = 10 * time.Second

//go:embed schema.sql
var schema string

// Exit codes of Main.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// service is one server over its database.
type service struct {
	config  config
	db      *sql.DB
	engine  *semel.Engine[*sql.Tx]
	handler http.Handler
	log     *slog.Logger
	metrics *metricsserver.Server // nil: none
}

// Main serves until ctx ends. It returns the program's exit code, 2 for wrong
// flags and for a database that cannot be used.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseConfig(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(stdout, "usage: payment [flags]")
		c.flags(stdout).PrintDefaults()
		return exitOK
	}
	if err == nil {
		return start(ctx, c, stdout, stderr)
	}
	_, _ = fmt.Fprintln(stderr, "payment:", err)
	return exitUsage
}

func start(ctx context.Context, c config, stdout, stderr io.Writer) int {
	s, err := open(ctx, c, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "payment:", err)
		return exitUsage
	}
	defer s.db.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.addr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "payment:", err)
		return exitUsage
	}
	_, _ = fmt.Fprintf(stdout, "payment: serving http://%s\n", listener.Addr())
	if s.metrics != nil {
		_, _ = fmt.Fprintf(stdout, "payment: metrics at %s\n", s.metrics.URL())
	}
	if err := s.serve(ctx, listener); err != nil {
		_, _ = fmt.Fprintln(stderr, "payment:", err)
		return exitError
	}
	return exitOK
}

// open opens the database, creates missing tables, and assembles the server.
func open(ctx context.Context, c config, log *slog.Logger) (*service, error) {
	db, err := sqlite.Open(c.db) //nolint:contextcheck // it bounds itself
	if err != nil {
		return nil, err
	}
	s := &service{config: c, db: db, log: log}
	if c.metrics != "" {
		o := semelotel.Options{System: "sqlite", Observer: event.Slog(log)}
		if s.metrics, err = metricsserver.Listen(ctx, c.metrics, o, log); err != nil {
			_ = db.Close()
			return nil, err
		}
	}
	if err = s.createTables(ctx); err == nil {
		err = s.assemble() //nolint:contextcheck // semel.New bounds its one question itself
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", c.db, err)
	}
	return s, nil
}

// createTables creates the tables that are missing. It waits for the write lock of
// other processes.
func (s *service) createTables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		_, err := s.db.ExecContext(ctx, schema)
		switch {
		case err == nil:
			return sqlitemigrate.Up(ctx, s.db, sqlitemigrate.Options{})
		case ctx.Err() != nil || !sqlite.IsBusy(err): // busy: it has waited for the busy_timeout
			return err
		}
	}
}

func (s *service) assemble() (err error) {
	if s.engine, err = s.newEngine(); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	if s.metrics != nil {
		if _, err := s.metrics.Telemetry.Watch(s.engine, semelotel.WatchOptions{}); err != nil {
			return fmt.Errorf("watch the database: %w", err)
		}
	}
	s.handler, err = s.routes()
	return err
}

// newEngine makes the engine. On a slow or locked database the first call takes up to
// startBound.
func (s *service) newEngine() (*semel.Engine[*sql.Tx], error) {
	o := semel.Options{Observer: event.Slog(s.log), Operations: []semel.Declared{createCharge}}
	if s.metrics != nil {
		o.Observer, o.Tracer = s.metrics.Telemetry, s.metrics.Telemetry
	}
	for deadline := time.Now().Add(startBound); ; {
		e, err := semel.New(sqlite.New(s.db, sqlite.Options{}), o)
		late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sqlite.ErrBusy)
		if !late || time.Now().After(deadline) {
			return e, err
		}
	}
}

// serve handles requests until ctx ends. Then it waits for running requests.
func (s *service) serve(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 2)
	go func() { ended <- web.Serve(listener) }()
	if s.metrics != nil {
		defer s.metrics.Close()
		go func() { ended <- s.metrics.Run(ctx) }()
	}
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, web.Shutdown(last), s.engine.Close(last))
}
