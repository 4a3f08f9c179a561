package realtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL that answers on its address. What ends or pauses it is
// for a server of [OwnPostgres]; on another it fails the test.
type Server struct {
	t   testing.TB
	url string
	own *instance // nil: it is shared
}

// URL is the address of the server's default database, as its superuser.
func (s *Server) URL() string { return s.url }

// Addr is the server's host and port.
func (s *Server) Addr() string {
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Errorf("parse %q: %v", s.url, err)
		return ""
	}
	return u.Host
}

// Database creates an empty database for the test, and drops it when the test
// ends, whoever is still connected. It returns its address.
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
	if err != nil {
		tb.Fatalf("parse %q: %v", s.url, err)
	}
	u.Path = "/" + name
	return u.String()
}

// exec runs one statement in the default database.
func (s *Server) exec(tb testing.TB, sql string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), ceiling)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// Mode is how a server is stopped.
type Mode string

// The ways to stop a server in an orderly manner.
const (
	Fast      Mode = "fast"      // roll back what is open, write everything, end
	Immediate Mode = "immediate" // end at once; the next start recovers
)

// Kill kills the server with all its processes, as SIGKILL does, and returns
// when none is left. It may be called from any goroutine.
func (s *Server) Kill() {
	s.t.Helper()
	s.do("kill", (*instance).kill)
}

// Stop stops the server and returns when it has ended, within 60 seconds. It may
// be called from any goroutine.
func (s *Server) Stop(mode Mode) {
	s.t.Helper()
	s.do("stop", func(p *instance) error { return p.stop(mode) })
}

// Pause stops all processes of the server in their tracks. Connections stay open
// and nothing answers, until [Server.Resume]. It may be called from any
// goroutine.
func (s *Server) Pause() {
	s.t.Helper()
	s.do("pause", func(p *instance) error { return p.signalAll(syscall.SIGSTOP) })
}

// Resume lets a paused server go on. It may be called from any goroutine.
func (s *Server) Resume() {
	s.t.Helper()
	s.do("resume", func(p *instance) error { return p.signalAll(syscall.SIGCONT) })
}

// Start starts a server that was killed or stopped, on the same port, and
// returns when it answers, within 60 seconds.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	if s.own == nil {
		tb.Fatal("start: the server is not this test's own")
	}
	if err := s.own.start(tb.Context()); err != nil {
		tb.Fatalf("start: %v", err)
	}
}

// do does something to a server of one's own. A failure is an error of the
// test, and not its end, because it may come from any goroutine.
func (s *Server) do(what string, act func(*instance) error) {
	s.t.Helper()
	if s.own == nil {
		s.t.Errorf("%s: the server is not this test's own", what)
		return
	}
	if err := act(s.own); err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}
