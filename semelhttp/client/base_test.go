package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/semelhttp/client"
)

// tripper is a base in a bubble: it answers at once, and notes when it was asked.
type tripper struct {
	answer func(try int, r *http.Request) (*http.Response, error)

	mu sync.Mutex
	at []time.Time
}

func (b *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.at = append(b.at, time.Now())
	n := len(b.at)
	b.mu.Unlock()
	if r.Body != nil {
		defer r.Body.Close()
	}
	return b.answer(n, r)
}

// waits are the times between the tries.
func (b *tripper) waits() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(b.at); i++ {
		waits = append(waits, b.at[i].Sub(b.at[i-1]))
	}
	return waits
}

// respond is a whole response.
func respond(r *http.Request, code int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: code, Header: h, Request: r, ContentLength: 4, Body: io.NopCloser(strings.NewReader("body")),
	}
}

// always answers every try the same way.
func always(code int, header ...string) *tripper {
	return &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) { return respond(r, code, header...), nil }}
}

// losing is a base that loses what comes back: the first responses, whole, are
// dropped.
type losing struct {
	http.RoundTripper

	left atomic.Int64
}

var errDropped = errors.New("the response was lost")

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil && l.left.Add(-1) >= 0 {
		_ = resp.Body.Close()
		return nil, timeout{errDropped}
	}
	return resp, err
}

// timeout is an error as the network makes them.
type timeout struct{ error }

func (e timeout) Unwrap() error { return e.error }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// TestTransportPassesOnCloseIdleConnections to a base that has some.
func TestTransportPassesOnCloseIdleConnections(t *testing.T) {
	t.Parallel()
	idle := &idler{}
	(&http.Client{Transport: &client.Transport{Base: idle}}).CloseIdleConnections()
	(&client.Transport{Base: always(http.StatusOK)}).CloseIdleConnections()
	if !idle.closed {
		t.Error("the connections were not closed")
	}
}

type idler struct {
	tripper

	closed bool
}

func (i *idler) CloseIdleConnections() { i.closed = true }

// TestTransportSurvivesABaseThatReturnsNothing, neither a response nor an error: it is an
// error, and the next try is answered.
func TestTransportSurvivesABaseThatReturnsNothing(t *testing.T) {
	t.Parallel()
	b := &tripper{answer: func(try int, r *http.Request) (*http.Response, error) {
		if try == 1 {
			return nil, nil
		}
		return respond(r, http.StatusOK), nil
	}}
	if got := trip(t, &client.Transport{Base: b}, post(t, "http://x", nil)); got.status != http.StatusOK || len(b.at) != 2 {
		t.Errorf("got %d after %d tries, want the response to the second", got.status, len(b.at))
	}
}
