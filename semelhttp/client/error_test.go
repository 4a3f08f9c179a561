package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportKnowsThatNothingWasSent when no try got as far as a connection.
func TestTransportKnowsThatNothingWasSent(t *testing.T) {
	t.Parallel()
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	for name, row := range map[string]struct {
		url   string
		tries int
	}{
		"closed port":    {"http://127.0.0.1:1", 3},
		"no such scheme": {"htp://127.0.0.1", 1},
		"no host":        {"http:///x", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBody("x")
			_, err := quick(&client.Transport{MaxTries: 3}).RoundTrip(post(t, row.url, b))
			var unanswered *client.UnansweredError
			if !errors.As(err, &unanswered) || errors.Is(err, semel.ErrOutcomeUnknown) || unanswered.Sent {
				t.Fatalf("got the error %v, want one that knows that nothing was sent", err)
			}
			check.Equal(t, unanswered.Tries, row.tries, "tries")
			b.wantClosed(t)
		})
	}
	_, err := quick(&client.Transport{MaxTries: 3}).RoundTrip(post(t, untrusted.URL, nil))
	var unanswered *client.UnansweredError
	if !errors.As(err, &unanswered) || unanswered.Tries != 1 {
		t.Errorf("a server that is not trusted: %v, want one try", err)
	}
}

// TestTransportRemembersThatSomethingWasSent, also when the last try was not.
func TestTransportRemembersThatSomethingWasSent(t *testing.T) {
	t.Parallel()
	for method, unknown := range map[string]bool{http.MethodPost: true, http.MethodGet: false} {
		var srv *httptest.Server
		srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = srv.Listener.Close()
			reset("")(w, r)
		}))
		t.Cleanup(srv.Close)
		r := post(t, srv.URL, nil)
		r.Method = method
		_, err := quick(&client.Transport{MaxTries: 3}).RoundTrip(r)
		var unanswered *client.UnansweredError
		if !errors.As(err, &unanswered) || !unanswered.Sent || errors.Is(err, semel.ErrOutcomeUnknown) != unknown {
			t.Errorf("%s: got the error %v, want one that knows that something was sent, unknown: %v", method, err, unknown)
		}
	}
}

// TestTransportUsesRegisteredProtocols with its base, and does not take its errors
// for refusals to send: it asks for no connection of the base's.
func TestTransportUsesRegisteredProtocols(t *testing.T) {
	t.Parallel()
	reused := func(r *http.Request) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Reused: true})
	}
	for name, connect := range map[string]func(*http.Request){"silent": func(*http.Request) {}, "reusing": reused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registered := &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) {
				connect(r)
				return nil, errors.New("the stream was reset")
			}}
			base := new(http.Transport)
			base.RegisterProtocol("other", registered)
			_, err := quick(&client.Transport{Base: base, MaxTries: 3}).RoundTrip(post(t, "other://x", nil))
			var unanswered *client.UnansweredError
			if !errors.As(err, &unanswered) || !unanswered.Sent || !errors.Is(err, semel.ErrOutcomeUnknown) {
				t.Fatalf("got the error %v, want an unknown outcome", err)
			}
			if n := len(registered.at); n != 3 || unanswered.Tries != 3 {
				t.Errorf("%d tries arrived, and %d are reported, want 3", n, unanswered.Tries)
			}
		})
	}
}

// TestTransportSendsNothingAfterItsContext, and knows it.
func TestTransportSendsNothingAfterItsContext(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for _, base := range []http.RoundTripper{new(http.Transport), always(http.StatusOK)} {
		b := newBody("x")
		r := post(t, "http://127.0.0.1:1", strings.NewReader("x")).WithContext(ctx)
		r.Body = b
		_, err := quick(&client.Transport{Base: base}).RoundTrip(r)
		var unanswered *client.UnansweredError
		if !errors.As(err, &unanswered) || unanswered.Sent || !errors.Is(err, gone) || errors.Is(err, semel.ErrOutcomeUnknown) {
			t.Errorf("%T: got the error %v, want the cause and that nothing was sent", base, err)
		}
		b.wantClosed(t)
	}
}

// TestTransportErrorsDoNotShowTheKey, but beside it.
func TestTransportErrorsDoNotShowTheKey(t *testing.T) {
	t.Parallel()
	s, url := plays(t, reset(""))
	retrying := http.Client{Transport: quick(&client.Transport{MaxTries: 2})}
	_, err := retrying.Do(post(t, url, strings.NewReader("x")))
	var unanswered *client.UnansweredError
	if !errors.As(err, &unanswered) || !errors.Is(err, semel.ErrOutcomeUnknown) {
		t.Fatalf("got the error %v, want an unknown outcome", err)
	}
	key := s.wantSame(t, 2, "x")
	if unanswered.Key != key || strings.Contains(err.Error(), strings.Trim(key, `"`)) {
		t.Errorf("the error is %q with the key %q, want %q beside the text", err, unanswered.Key, key)
	}
}

// TestTransportGetsTheStoredResponse of a server that does things once, however many
// responses are lost; also by asking again with the key of a call that was given
// up.
func TestTransportGetsTheStoredResponse(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t), new(atomic.Int64)
	url := b.serve(t, n)
	request := func() *http.Request {
		r := post(t, url+"/ops", strings.NewReader(`{"n":1}`))
		r.Header.Set("X-User", "ann")
		return r
	}
	lossy := &losing{RoundTripper: new(http.Transport)}
	lossy.left.Store(3)
	got := trip(t, &client.Transport{Base: lossy}, request())
	if got.status != http.StatusCreated || got.body != "run 1" || !got.replayed() {
		t.Errorf("got %d %q, replayed %v", got.status, got.body, got.replayed())
	}

	lossy.left.Store(2)
	_, err := quick(&client.Transport{Base: lossy, MaxTries: 2}).RoundTrip(request())
	var unanswered *client.UnansweredError
	if !errors.As(err, &unanswered) || !errors.Is(err, errDropped) {
		t.Fatalf("got the error %v, want that no response came", err)
	}
	r := request()
	r.Header.Set(headerKey, unanswered.Key)
	again := trip(t, &client.Transport{Base: lossy}, r)
	if again.status != http.StatusCreated || again.body != "run 2" || !again.replayed() || n.Load() != 2 {
		t.Errorf("asked again, got %d %q, replayed %v, after %d runs", again.status, again.body, again.replayed(), n.Load())
	}
}
