package client_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportLeavesUpgradesAlone: their connection is the caller's.
func TestTransportLeavesUpgradesAlone(t *testing.T) {
	t.Parallel()
	_, url := plays(t, reset("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello"))
	r := post(t, url, nil)
	r.Method = http.MethodGet
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp := check.Must(quick(new(client.Transport)).RoundTrip(r))(t)
	defer resp.Body.Close()
	if _, ok := resp.Body.(io.Writer); !ok {
		t.Errorf("%d has a body of type %T, which cannot be written to", resp.StatusCode, resp.Body)
	}
}

// TestTransportFollowsARedirectWithTheSameKey, since it is the same call, also
// to another host.
func TestTransportFollowsARedirectWithTheSameKey(t *testing.T) {
	t.Parallel()
	s, there := plays(t, status(http.StatusBadGateway), status(http.StatusCreated))
	first, url := plays(t, status(http.StatusPermanentRedirect, "Location", there))
	client := http.Client{Transport: quick(new(client.Transport))}
	resp := check.Must(client.Do(post(t, url, strings.NewReader("x"))))(t)
	resp.Body.Close()
	key := first.wantSame(t, 1, "x")
	check.Equal(t, s.wantSame(t, 2, "x"), key, "the other host got the key")
	if got := resp.Request.Header.Get(headerKey); resp.StatusCode != http.StatusCreated || got != key {
		t.Errorf("got %d, and its request has the key %q, want %q", resp.StatusCode, got, key)
	}
}

// TestTransportSpeaksHTTP2 as well.
func TestTransportSpeaksHTTP2(t *testing.T) {
	t.Parallel()
	s := &script{answers: []http.HandlerFunc{
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		status(http.StatusServiceUnavailable),
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) },
	}}
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	got := trip(t, &client.Transport{Base: srv.Client().Transport}, post(t, srv.URL, strings.NewReader("x")))
	if got.status != http.StatusOK || got.body != "HTTP/2.0" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	s.wantSame(t, 3, "x")
}

// TestTransportReturnsAStreamAtOnce: the caller reads while the server writes.
func TestTransportReturnsAStreamAtOnce(t *testing.T) {
	t.Parallel()
	more, ended := make(chan struct{}), make(chan struct{})
	_, url := plays(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, "two\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	})
	resp := check.Must(quick(new(client.Transport)).RoundTrip(post(t, url, strings.NewReader("x"))))(t)
	line := make([]byte, 4)
	for _, want := range []string{"one\n", "two\n"} {
		if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != want {
			t.Fatalf("read %q, %v, want %q", line, err, want)
		}
		if want == "one\n" {
			close(more)
		}
	}
	_ = resp.Body.Close()
	<-ended
}

// resets closes the first n connections before anything is read from them.
type resets struct {
	net.Listener

	n int
}

func (l *resets) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.n == 0 {
			return conn, err
		}
		l.n--
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// TestTransportSurvivesLostConnections before the server reads.
func TestTransportSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	s := &script{answers: []http.HandlerFunc{status(http.StatusCreated)}}
	srv := httptest.NewUnstartedServer(s)
	srv.Listener = &resets{srv.Listener, 5}
	srv.Start()
	t.Cleanup(srv.Close)
	text := strings.Repeat("0123456789", 50_000)
	got := trip(t, new(client.Transport), post(t, srv.URL, strings.NewReader(text)))
	check.Equal(t, got.status, http.StatusCreated, "status")
	s.wantSame(t, 1, text)
}
