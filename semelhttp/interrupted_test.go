package semelhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// protector protects handlers by the records of an engine.
type protector = func(e *semel.Engine[semelTx]) (func(http.Handler) http.Handler, error)

// runAgain protects an operation that runs again after its leader is lost.
func runAgain(e *semel.Engine[semelTx]) (func(http.Handler) http.Handler, error) {
	return semelhttp.Middleware(e, define("op", plain{Policy: semel.AtLeastOnce(), Lease: time.Hour}), options())
}

// overtaken serves h in two processes over one store. The first request runs in b's
// process until its lease expires; the returned response is that of the other
// process, which ran the operation again. late receives the first request's answer, which
// must not come before bar holds its handler.
func overtaken(t *testing.T, b *testEngine, protect protector, h http.HandlerFunc, bar *barrier, late <-chan answer,
	send func(zombie string),
) (zombie string, first answer) {
	t.Helper()
	other := check.Must(semel.New[semelTx](b.store, semel.Options{Survive: store.NoFailure}))(t)
	var bases []string
	for _, e := range []*semel.Engine[semelTx]{b.Engine, other} {
		once := check.Must(protect(e))(t)
		bases = append(bases, serve(t, once(h)))
	}
	send(bases[0])
	bar.held(t, late)
	b.ahead.Store(int64(2 * time.Hour))
	return bases[0], testRequest{}.do(t, bases[1])
}

// sendLater sends the zero request in a goroutine.
func sendLater(t *testing.T, late chan<- answer) func(base string) {
	return func(base string) {
		go func() {
			got, err := testRequest{}.send(t, base)
			check.NoError(t, err)
			late <- got
		}()
	}
}

// streamsUntil returns a handler that streams the number of its run. The first run stops in the
// middle until bar is opened.
func streamsUntil(bar *barrier) http.HandlerFunc {
	n := new(atomic.Int64)
	return func(w http.ResponseWriter, _ *http.Request) {
		run := n.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "run %d", run)
		if run == 1 {
			_ = http.NewResponseController(w).Flush()
			bar.wait()
		}
	}
}

// TestInterruptedStreamIsNoResponse: a leader that lost its lease while it was
// streaming closes its connection, so that its part is not taken for the whole.
func TestInterruptedStreamIsNoResponse(t *testing.T) {
	t.Parallel()
	b, bar := newTestEngine(t, semel.Options{}), newBarrier()
	var resp *http.Response
	zombie, first := overtaken(t, b, runAgain, streamsUntil(bar), bar, nil, func(zombie string) {
		var err error
		if resp, err = testClient.Do(testRequest{}.request(t, zombie)); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the stream begins with %v, %v", resp, err)
		}
	})
	defer resp.Body.Close()
	wantFirst(t, first, http.StatusOK, "run 2")
	close(bar.open)
	body, err := io.ReadAll(resp.Body)
	check.Fails(t, err, "the zombie's client read %q to its end; it must not look complete", body)
	wantReplay(t, testRequest{}.do(t, zombie), first)
}

// TestInterruptedStreamInHTTP10: a client that cannot distinguish a part from the
// whole gets nothing before the outcome is stored; then it gets the current
// response.
func TestInterruptedStreamInHTTP10(t *testing.T) {
	t.Parallel()
	b, bar := newTestEngine(t, semel.Options{}), newBarrier()
	late := make(chan answer, 1)
	_, first := overtaken(t, b, runAgain, streamsUntil(bar), bar, late, func(zombie string) {
		conn := sendHTTP10(t, zombie)
		go func() {
			defer close(late)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			check.NoError(t, err)
			late <- answer{resp.StatusCode, resp.Header, string(text)}
		}()
	})
	wantFirst(t, first, http.StatusOK, "run 2")
	close(bar.open)
	wantReplay(t, <-late, first)
}

// TestStreamInHTTP10: the stream is whole, has its length, and is stored.
func TestStreamInHTTP10(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "a part")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, " and the rest")
		})
		resp, err := http.ReadResponse(bufio.NewReader(sendHTTP10(t, srv)), nil)
		check.Require(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		const whole = "a part and the rest"
		if string(text) != whole || resp.ContentLength != int64(len(whole)) || err != nil {
			t.Errorf("got %q of %d bytes, %v", text, resp.ContentLength, err)
		}
		if again := (testRequest{}).do(t, srv); again.body != whole || !again.replayed() {
			t.Errorf("the repeat got %d %q", again.status, again.body)
		}
	})
}

// sendHTTP10 sends the zero request as an HTTP/1.0 client does.
func sendHTTP10(t *testing.T, base string) net.Conn {
	t.Helper()
	r := testRequest{}.request(t, base)
	conn := check.Must(new(net.Dialer).DialContext(t.Context(), "tcp", r.URL.Host))(t)
	t.Cleanup(func() { _ = conn.Close() })
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.0\r\nHost: %s\r\nContent-Length: %d\r\n", r.Method, r.URL.RequestURI(), r.URL.Host, r.ContentLength)
	_ = r.Header.Write(&text) // to memory
	text.WriteString("\r\n")
	_, _ = io.Copy(&text, r.Body)
	check.Must(io.WriteString(conn, text.String()))(t)
	return conn
}
