package realtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
)

// Server is a PostgreSQL that answers on its address. What ends or pauses it is
// for a server of [OwnPostgres]; on another it fails the test.
//
// Its URL leads to its default database, as its superuser.
type Server struct{ handle }

// Database creates an empty database, and drops it at the end of the test, even
// with open connections. It returns its address.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := "t_" + strings.ToLower(rand.Text())
	s.exec(tb, "create database "+name+" template template0")
	tb.Cleanup(func() {
		if s.own == nil { // with its own server it is gone anyway
			s.exec(tb, "drop database if exists "+name+" with (force)")
		}
	})
	u, err := url.Parse(s.url)
	check.Require(tb, err, "parse %q", s.url)
	u.Path = "/" + name
	return u.String()
}

// exec runs one statement in the default database.
func (s *Server) exec(tb testing.TB, sql string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), ceiling)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	check.Require(tb, err, "connect")
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// row reads the only value of a query's only row, in the default database.
func (s *Server) row(tb testing.TB, into any, sql string, args ...any) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), ceiling)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql, args...).Scan(into)
}

// Mode is how a server is stopped.
type Mode string

// The ways to stop a server in an orderly manner.
const (
	Fast      Mode = "fast"      // roll back what is open, write everything, end
	Immediate Mode = "immediate" // end at once; the next start recovers
)

// Stop stops the server and returns when it has ended, within 60 seconds. It may
// be called from any goroutine.
func (s *Server) Stop(mode Mode) {
	s.t.Helper()
	s.do("stop", func(p *instance) error {
		signals := map[Mode]syscall.Signal{Fast: syscall.SIGINT, Immediate: syscall.SIGQUIT}
		sig, ok := signals[mode]
		if !ok {
			return fmt.Errorf("there is no mode %q", mode)
		}
		return p.stop(sig)
	})
}
