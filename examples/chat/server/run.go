package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Exit codes of the program.
const (
	exitOK    = 0
	exitError = 1 // the server started and failed later
	exitUsage = 2 // wrong flags, or a database or address that cannot be used
)

// Main runs the program until ctx ends and returns its exit code. For a wrong
// flag, or a database or address that cannot be used, it writes one line to
// stderr.
func Main(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return run(ctx, args, getenv, stdout, stderr, hooks{})
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer, to hooks) int {
	c, err := parseConfig(args, getenv)
	if errors.Is(err, errHelp) {
		usage(stdout)
		return exitOK
	}
	if err != nil {
		return refuse(stderr, err)
	}
	s, err := open(ctx, c, slog.New(slog.NewTextHandler(stderr, nil)), to)
	if err != nil {
		return refuse(stderr, err)
	}
	if c.command != nil {
		return s.command(ctx, c.command, getenv("USER"), stdout, stderr)
	}
	listener, err := (&net.ListenConfig{Control: control}).Listen(ctx, "tcp", c.addr)
	if err != nil {
		s.closeDatabases()
		return refuse(stderr, err)
	}
	_, _ = fmt.Fprintf(stdout, "chat: serving http://%s (mode %s)\n", listener.Addr(), c.mode)
	if s.metrics != nil {
		_, _ = fmt.Fprintf(stdout, "chat: metrics at %s\n", s.metrics.URL())
	}
	if err := s.serve(ctx, listener); err != nil {
		_, _ = fmt.Fprintln(stderr, "chat:", err)
		return exitError
	}
	return exitOK
}

// refuse writes one line that says why the program does not start.
func refuse(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintln(stderr, "chat:", strings.Join(strings.Fields(err.Error()), " "))
	return exitUsage
}

// command runs an operator's command.
func (s *app) command(ctx context.Context, c *command, actor string, stdout, stderr io.Writer) int {
	if actor == "" {
		actor = "operator"
	}
	err := errors.Join(c.do(ctx, s, actor, stdout), s.close(ctx))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "chat:", err)
		return exitError
	}
	return exitOK
}

// writeBound is how long a response may take. A handler that streams sets a write deadline
// of its own, by http.ResponseController.
const writeBound = time.Minute

// serve handles requests and runs background work until ctx ends. Then it waits
// for running requests and tasks.
func (s *app) serve(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      writeBound + s.config.wait,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	still := make(chan struct{})
	go func() {
		defer close(still)
		s.background(background)
	}()
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	stop()
	err = errors.Join(err, s.live.Drain(last, reconnectWithin), web.Shutdown(last))
	select {
	case <-still:
	case <-last.Done():
	}
	return errors.Join(err, s.close(last))
}
