package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/postgres"
)

// Server is a PostgreSQL server of the lab, with fsync on.
type Server struct {
	// Dial opens the connections of pools. Nil: the default.
	Dial pgconn.DialFunc

	running *realtest.Durable
}

// Settings of the server. Files of the log are recycled, because creating new ones
// would be measured. Checkpoints run on request, before each slot. Autovacuum runs
// by default; an experiment cannot change a setting that is listed here.
func settings() []string {
	return []string{
		"shared_buffers=1GB", "max_connections=1000", "min_wal_size=4GB", "max_wal_size=8GB",
		"checkpoint_timeout=1h", "wal_buffers=16MB",
	}
}

// Postgres returns the server that experiments share. The first call starts it.
func (l *Lab) Postgres(ctx context.Context) (*Server, error) {
	if l.server != nil {
		return l.server, nil
	}
	s, err := l.start(ctx, realtest.DurableOptions{})
	if err != nil {
		return nil, err
	}
	l.server = s
	return s, nil
}

// StartPostgres starts another server for the experiment, with additional settings
// and environment variables.
func (l *Lab) StartPostgres(ctx context.Context, o realtest.DurableOptions) (*Server, error) {
	s, err := l.start(ctx, o)
	if err != nil {
		return nil, err
	}
	l.Closing(s.running.Close)
	return s, nil
}

func (l *Lab) start(ctx context.Context, o realtest.DurableOptions) (*Server, error) {
	o.Settings = append(settings(), o.Settings...)
	running, err := realtest.StartDurable(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Server{running: running}
	l.Logf("a PostgreSQL runs; its log is written once, so that its files are there")
	if err := s.recycle(ctx, l.either(128, 1500)); err != nil {
		return nil, errors.Join(err, running.Close())
	}
	return s, nil
}

// URL is the server's URL, for its superuser.
func (s *Server) URL() string { return s.running.URL() }

// PostgresVersion is the version of the shared server, and "" if none was started.
func (l *Lab) PostgresVersion(ctx context.Context) (version string) {
	if l.server == nil {
		return ""
	}
	err := l.server.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "show server_version").Scan(&version)
	})
	if err != nil {
		return "of an unknown version: " + err.Error()
	}
	return version
}

// Usage returns the processor time of all the server's processes.
func (s *Server) Usage() (time.Duration, error) { return usage.Tree(s.running.PID())() }

// Pool opens a pool on a database, which it creates if it does not exist. The pool
// is closed with the experiment, if not before.
func (s *Server) Pool(ctx context.Context, l *Lab, database string, conns int) (*pgxpool.Pool, error) {
	if err := s.create(ctx, database); err != nil {
		return nil, err
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		return nil, fmt.Errorf("parse address: %w", err)
	}
	u.Path = "/" + database
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("configure pool: %w", err)
	}
	config.MaxConns = int32(conns)
	postgres.WatchReplication(config.ConnConfig)
	if s.Dial != nil {
		config.ConnConfig.DialFunc = s.Dial
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	l.Closing(func() error { pool.Close(); return nil })
	return pool, open(ctx, pool, conns)
}

// open opens all connections of a pool, so that opening one is not measured.
func open(ctx context.Context, pool *pgxpool.Pool, conns int) error {
	held := make([]*pgxpool.Conn, 0, conns)
	defer func() {
		for _, conn := range held {
			conn.Release()
		}
	}()
	for range conns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("open connection: %w", err)
		}
		held = append(held, conn)
	}
	return nil
}

func (s *Server) create(ctx context.Context, database string) error {
	return s.with(ctx, func(conn *pgx.Conn) error {
		var there bool
		err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", database).Scan(&there)
		if err != nil || there {
			return err
		}
		_, err = conn.Exec(ctx, "create database "+pgx.Identifier{database}.Sanitize()+" template template0")
		return err
	})
}

// recycle writes some megabytes of log, so that the server has files to recycle and
// creates none during a measurement.
func (s *Server) recycle(ctx context.Context, megabytes int) error {
	return s.with(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{
			"create table filler (bytes text)",
			"alter table filler alter bytes set storage external",
			fmt.Sprintf("insert into filler select repeat('x', 1 << 20) from generate_series(1, %d)", megabytes),
			"drop table filler",
			"checkpoint",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("write the log: %w", err)
			}
		}
		return nil
	})
}

func (s *Server) with(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}
