package realtest

import (
	"context"
	"net/url"
	"sync"
	"syscall"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// handle is a test's handle of a server.
type handle struct {
	t   testing.TB
	url string
	own *instance // nil: it is shared
}

// shared is the one server of its engine in the test binary, started by the first
// test that needs it.
type shared struct {
	once   sync.Once
	server *instance
	err    error
}

// launcherFunc returns an engine's launcher for a program and settings.
type launcherFunc func(program string, settings []string) launcher

// handle finds or starts the server that tests share.
func (s *shared) handle(tb testing.TB, e engine, with launcherFunc) handle {
	tb.Helper()
	at := thisMachine().need(tb, e)
	if at.url != "" {
		return handle{t: tb, url: at.url}
	}
	s.once.Do(func() { s.server, s.err = run(context.WithoutCancel(tb.Context()), with(at.program, nil)) })
	if s.err != nil {
		tb.Fatalf("start %s: %v", e.name, s.err)
	}
	return handle{t: tb, url: s.server.url()}
}

// ownHandle starts a server for one test, which ends with it.
func ownHandle(tb testing.TB, e engine, with launcherFunc, settings []string) handle {
	tb.Helper()
	e.env = ""
	at := thisMachine().need(tb, e)
	p, err := run(tb.Context(), with(at.program, settings))
	check.Require(tb, err, "start %s", e.name)
	tb.Cleanup(func() {
		check.NoError(tb, p.close(), "end %s", e.name)
	})
	return handle{t: tb, url: p.url(), own: p}
}

// URL is the server's address, for its superuser.
func (s *handle) URL() string { return s.url }

// Addr is the server's host and port.
func (s *handle) Addr() string {
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Errorf("parse %q: %v", s.url, err)
		return ""
	}
	return u.Host
}

// Kill kills the server with all its processes, as SIGKILL does, and returns when
// none is left. It may be called from any goroutine.
func (s *handle) Kill() {
	s.t.Helper()
	s.do("kill", (*instance).kill)
}

// Pause stops all processes of the server in their tracks. Connections stay open
// and nothing answers, until Resume. It may be called from any goroutine.
func (s *handle) Pause() {
	s.t.Helper()
	s.do("pause", func(p *instance) error { return p.signalAll(syscall.SIGSTOP) })
}

// Resume continues a paused server. It may be called from any goroutine.
func (s *handle) Resume() {
	s.t.Helper()
	s.do("resume", func(p *instance) error { return p.signalAll(syscall.SIGCONT) })
}

// Start starts a server that was killed or stopped, on the same port, and
// returns when it answers, within 3 minutes.
func (s *handle) Start(tb testing.TB) {
	tb.Helper()
	if s.own == nil {
		tb.Fatal("start: the server is not this test's own")
	}
	check.Require(tb, s.own.start(tb.Context()), "start")
}

// do calls fn on a server of the test's own. A failure is an error of the test, and
// not its end, because it may come from any goroutine.
func (s *handle) do(what string, act func(*instance) error) {
	s.t.Helper()
	if s.own == nil {
		s.t.Errorf("%s: the server is not this test's own", what)
		return
	}
	if err := act(s.own); err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}
