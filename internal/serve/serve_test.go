package serve_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/serve"
)

// running is a server with one running request.
type running struct {
	ended   chan error  // what HTTP returned
	reply   chan string // the body of the request's response, or the error
	release chan struct{}
}

// start serves until ctx ends, and sends a request whose handler waits for release or for
// the end of its connection.
func start(ctx context.Context, t *testing.T, s *http.Server, grace time.Duration) running {
	t.Helper()
	r := running{make(chan error, 1), make(chan string, 1), make(chan struct{})}
	entered := make(chan struct{})
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		close(entered)
		select {
		case <-r.release:
			_, _ = io.WriteString(w, "whole") // the test reads it
		case <-req.Context().Done():
		}
	})
	l := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	go func() { r.ended <- serve.HTTP(ctx, l, s, grace) }()
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		if err != nil {
			r.reply <- err.Error()
			return
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		r.reply <- string(text)
	}()
	<-entered
	return r
}

// A request that runs when the context ends is answered.
func TestRunningRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	s := &http.Server{ReadHeaderTimeout: time.Minute}
	closing := make(chan struct{})
	s.RegisterOnShutdown(func() { close(closing) })
	r := start(ctx, t, s, time.Minute)
	stop()
	<-closing
	close(r.release)
	check.Equal(t, <-r.reply, "whole", "the reply")
	check.Require(t, <-r.ended)
}

// After the grace, connections are closed.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	r := start(ctx, t, &http.Server{ReadHeaderTimeout: time.Minute}, 0)
	stop()
	check.Require(t, <-r.ended)
	if text := <-r.reply; text == "whole" || text == "" {
		t.Errorf("the request got %q, want an error", text)
	}
}

// Closing the server ends HTTP without an error. A listener that fails does not.
func TestCloseAndFailure(t *testing.T) {
	t.Parallel()
	s := &http.Server{ReadHeaderTimeout: time.Minute}
	r := start(t.Context(), t, s, 0)
	check.Require(t, s.Close())
	check.Require(t, <-r.ended)
	<-r.reply

	l := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	check.Require(t, l.Close())
	check.ErrorIs(t, serve.HTTP(t.Context(), l, &http.Server{ReadHeaderTimeout: time.Minute}, 0), net.ErrClosed, "with a closed listener")
}
