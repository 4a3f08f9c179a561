package server_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// localServer is a server in the test's own process, so that the test can inspect it.
type localServer struct {
	*client

	lines chan string // what the server prints after its address
	stop  func()
}

// serveLocal runs a server until the test ends or stop is called. Its responses are
// checked against the OpenAPI description.
func serveLocal(t *testing.T, to server.Hooks, args ...string) *localServer {
	t.Helper()
	return serveLogging(t, t.Output(), to, args...)
}

// serveLogging is serveLocal with a log of its own.
func serveLogging(t *testing.T, log io.Writer, to server.Hooks, args ...string) *localServer {
	t.Helper()
	to.Edge = beneath(describe(t), to.Edge)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stdout, say := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := server.Run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), os.Getenv, say, log, to)
		_ = say.Close()
		ended <- code
	}()
	h := &localServer{lines: make(chan string, 10)}
	go func() {
		defer close(h.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			h.lines <- lines.Text()
		}
	}()
	line, ok := <-h.lines
	if !ok {
		cancel()
		t.Fatalf("the server ended with %d before it served", <-ended)
	}
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		h.http.CloseIdleConnections()
		cancel()
		check.Equal(t, <-ended, 0, "the exit code")
	}
	t.Cleanup(h.stop)
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "chat: serving "), " ")
	h.client = newClient(t, address)
	return h
}

// beneath wraps outer around inner, which may be nil.
func beneath(outer, inner func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	if inner == nil {
		return outer
	}
	return func(next http.Handler) http.Handler { return outer(inner(next)) }
}
