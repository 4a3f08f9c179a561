package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// lateStore fails the first times that it is asked for its capabilities.
type lateStore struct {
	outboxed

	errs []error
}

func (s *lateStore) Capabilities(ctx context.Context) (store.Capabilities, error) {
	if len(s.errs) == 0 {
		return s.TxStore.Capabilities(ctx)
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return store.Capabilities{}, err
}

// TestStartWaitsForItsDatabases: while a server starts, its database is locked or slow.
func TestStartWaitsForItsDatabases(t *testing.T) {
	t.Parallel()
	late := func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] {
		return &lateStore{outboxed{s}, []error{fmt.Errorf("prepare: %w", sqlite.ErrBusy), context.DeadlineExceeded}}
	}
	s := serveLocal(t, server.Hooks{Records: late, Queue: late}, newFiles(t, inline).args(time.Minute)...)
	owner := s.signIn(t, "owner")
	s.settled(t, creation(owner, "k", "crew")).want(t, 201, "")
}

// TestStopLetsRequestsFinish stops a server while a creation is held. The creation
// is answered, and the restarted server replays the answer.
func TestStopLetsRequestsFinish(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		b := newBarrier()
		s := serveLocal(t, b.at(f.mode), f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		asked := creation(owner, "k", "crew")
		b.armed.Store(true)
		var held crowd
		held.send(t, 1, s.trying(asked))
		<-b.arrived
		s.stopAt(t, b)
		before := held.wait()[0].want(t, http.StatusCreated, "")

		s = serveLocal(t, newBarrier().at(f.mode), f.args(time.Minute)...)
		s.send(t, asked).wantReplayOf(t, before)
	})
}

// stopAt begins to stop the server, opens the barrier when it accepts no new connections any more,
// and waits for its end.
func (s *localServer) stopAt(t *testing.T, b *barrier) {
	t.Helper()
	var stopping sync.WaitGroup
	stopping.Go(s.stop)
	fresh := newClient(t, s.base)
	realtest.Poll(t, "the server to refuse connections", func() bool {
		_, err := fresh.try(t.Context(), request{method: "GET", path: "/healthz"})
		fresh.http.CloseIdleConnections()
		return err != nil
	})
	close(b.open)
	stopping.Wait()
}

// TestStopWithSilentClients: a server stops in its time although the clients of many streams neither
// read nor answer, as those that have vanished.
func TestStopWithSilentClients(t *testing.T) {
	t.Parallel()
	fullOnly(t)
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	const webSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: chat.v1.json\r\n"
	for i := range 5 {
		u := s.signIn(t, fmt.Sprint("user ", i))
		for range 20 {
			ticket := s.send(t, request{method: "POST", path: "/v1/tickets", as: u}).want(t, http.StatusCreated, "").value(t)["ticket"].(string)
			s.silent(t, "/v1/ws?ticket="+ticket, webSocket, "101 Switching Protocols")
			s.silent(t, "/v1/events", "Authorization: Bearer "+u.Token+"\r\n", "200 OK")
		}
	}
	s.stop() // fails if the server does not end with success
}

// TestStalledRequestsEnd: a client that sends a part of a request, and then nothing, does not keep the
// server's memory. A body that is too large is refused before it is read.
func TestStalledRequestsEnd(t *testing.T) {
	t.Parallel()
	fullOnly(t) // the limit is 10 seconds
	s := serveLocal(t, server.Hooks{}, newFiles(t, inline).args(time.Minute)...)
	var conns []net.Conn
	for _, sent := range []string{
		"POST /v1/users HTTP/1.1\r\nHost: x\r\n",
		"POST /v1/users HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{",
	} {
		conns = append(conns, s.dial(t, sent))
	}
	for i, conn := range conns {
		check.NoError(t, check.Err(io.Copy(io.Discard, conn)), "stalled request %d", i) // until the server closes the connection
	}
}

// dial opens a connection and writes a text.
func (s *localServer) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	conn := check.Must(new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://")))(t)
	t.Cleanup(func() { _ = conn.Close() })
	check.Must(conn.Write([]byte(text)))(t)
	return conn
}

// silent opens a stream, reads the status, and nothing more.
func (s *localServer) silent(t *testing.T, path, header, status string) {
	t.Helper()
	conn := s.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+header+"\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, status) {
		t.Fatalf("%s: %q, %v; want %s", path, line, err, status)
	}
}

// TestMetrics: the address of -metrics serves the metrics of both engines and of the database,
// and the public address does not.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, append(newFiles(t, inline).args(time.Second), "-metrics", "127.0.0.1:0")...)
	_, url, _ := strings.Cut(<-s.lines, "metrics at ")
	for range 2 {
		s.settled(t, signUp("sign up ann", "ann")).want(t, http.StatusCreated, "")
	}
	scrape := func(url string) string { return newClient(t, url).send(t, request{method: "GET"}).Body }
	text := scrape(url)
	for _, want := range []string{
		`semel_events_total{db_system_name="sqlite",semel_event="succeeded",semel_operation="sign_up"} 1`,
		`semel_events_total{db_system_name="sqlite",semel_event="replayed",semel_operation="sign_up"} 1`,
		`semel_records{db_system_name="sqlite",semel_operation="sign_up",semel_state="succeeded"} 1`,
		`semel_outbox_parked_aggregates{db_system_name="sqlite"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	if text := scrape(s.base + "/metrics"); strings.Contains(text, "semel_") {
		t.Error("the public address serves the metrics")
	}
}
