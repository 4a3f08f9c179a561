package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// orderCall is an operation that charges a customer at another server.
func orderCall(key string, lease time.Duration) semel.Call {
	op := semel.Define("order", semel.OperationOptions[string]{Policy: semel.Keyed(), Lease: lease})
	return op.Call(semel.ScopeOf("ann"), key, "x")
}

// TestTransportSendsTheSameChildKeyAfterATakeover: the first attempt is lost
// with the response to its call, the second one is answered what the receiver
// made the first time.
func TestTransportSendsTheSameChildKeyAfterATakeover(t *testing.T) {
	t.Parallel()
	receiver, charges := newTestEngine(t), new(atomic.Int64)
	url := receiver.serve(t, charges)
	lossy := &losing{RoundTripper: new(http.Transport)}
	tr := quick(&client.Transport{Base: lossy, MaxTries: 1})
	call := func(ctx context.Context, name string) (*http.Response, error) {
		r := post(t, url+"/ops", strings.NewReader(`{"amount":500}`)).WithContext(client.WithChildKey(ctx, name))
		r.Header.Set("X-User", "shop")
		return tr.RoundTrip(r)
	}

	b := newTestEngine(t)
	first, _, err := adapter.Begin(t.Context(), b.Engine, orderCall("7", 0))
	check.Require(t, err)
	lossy.left.Store(1)
	_, err = call(first.Context(), "charge")
	var unanswered *client.UnansweredError
	if !errors.As(err, &unanswered) {
		t.Fatalf("got the error %v, want that no response came", err)
	}
	if want := `"` + first.ChildKey("charge") + `"`; unanswered.Key != want {
		t.Errorf("sent the key %s, want the attempt's child key %s", unanswered.Key, want)
	}
	first.Abandon() // the attempt ends, and its effect is unknown
	b.ahead.Add(int64(time.Hour))

	var second, other answer
	_, _, err = semel.Do(t.Context(), b.Engine, orderCall("7", 0), func(ctx context.Context) (string, error) {
		a, _ := semel.AttemptOf(ctx)
		if a.Number() != 2 {
			t.Errorf("it is attempt %d, want the second", a.Number())
		}
		second, other = read(t, call)(ctx, "charge"), read(t, call)(ctx, "fee")
		return "", nil
	})
	check.Require(t, err)
	if second.body != "run 1" || !second.replayed() {
		t.Errorf("the second attempt got %q, replayed %v; want the result whose reply the first attempt lost", second.body, second.replayed())
	}
	if other.body != "run 2" || other.replayed() || charges.Load() != 2 {
		t.Errorf("a call of another name got %q, replayed %v, after %d charges", other.body, other.replayed(), charges.Load())
	}
}

// read makes of a call one whose response is read.
func read(t *testing.T, call func(context.Context, string) (*http.Response, error)) func(context.Context, string) answer {
	t.Helper()
	return func(ctx context.Context, name string) answer {
		resp, err := call(ctx, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return answer{}
		}
		defer resp.Body.Close()
		var text strings.Builder
		_ = resp.Write(&text)
		_, body, _ := strings.Cut(text.String(), "\r\n\r\n")
		return answer{resp.StatusCode, resp.Header, body}
	}
}

// TestTransportRefusesUnnamedCallsOfAnOperation, whose key would be another in
// every attempt, and named ones where there is no attempt.
func TestTransportRefusesUnnamedCallsOfAnOperation(t *testing.T) {
	t.Parallel()
	s, url := plays(t, status(http.StatusOK))
	send := func(ctx context.Context, tr *client.Transport, header ...string) error {
		r := post(t, url, strings.NewReader("x")).WithContext(ctx)
		for _, line := range header {
			r.Header.Set(headerKey, line)
		}
		resp, err := quick(tr).RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	wantFieldError(t, send(client.WithChildKey(t.Context(), "charge"), new(client.Transport)), "ctx")

	b := newTestEngine(t)
	_, _, err := semel.Do(t.Context(), b.Engine, orderCall("7", 0), func(ctx context.Context) (string, error) {
		wantFieldError(t, send(ctx, new(client.Transport)), headerKey)
		wantFieldError(t, send(client.WithChildKey(ctx, "charge"), new(client.Transport), "another"), headerKey)
		s.none(t)

		child, err := semel.ChildKey(ctx, "charge")
		return "", errors.Join(err,
			send(ctx, new(client.Transport), "the caller's own"),
			send(ctx, &client.Transport{KeyFunc: func(*http.Request) (string, error) { return "order 7", nil }}),
			send(client.WithChildKey(ctx, "charge"), new(client.Transport), child),
			send(client.WithChildKey(ctx, "charge"), &client.Transport{RawKeys: true}),
		)
	})
	check.NoError(t, err)
	tries := s.arrived()
	if len(tries) != 4 || tries[2].keys[0] != tries[3].keys[0] {
		t.Errorf("sent %v, want four, the last two with the child key", tries)
	}
}

// TestTransportInInlineOperations: the transaction that asked is rolled
// back, and the next one asks for the same thing.
func TestTransportInInlineOperations(t *testing.T) {
	t.Parallel()
	s, url := plays(t, status(http.StatusCreated))
	b := newTestEngine(t)
	call := semel.Define("inline", semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), "7", "x")
	full := errors.New("the disk is full")
	for _, end := range []error{full, nil} {
		_, _, err := semel.DoTx(t.Context(), b.Engine, call, func(ctx context.Context, _ *memory.Tx) (string, error) {
			_, err := quick(new(client.Transport)).RoundTrip(post(t, url, nil).WithContext(ctx))
			wantFieldError(t, err, headerKey)
			trip(t, new(client.Transport), post(t, url, nil).WithContext(client.WithChildKey(ctx, "charge")))
			return "", end
		})
		if !errors.Is(err, end) {
			t.Fatalf("DoTx = %v, want %v", err, end)
		}
	}
	s.wantSame(t, 2, "")
}

// TestTransportNamesCallsOfAnyMethod that has an effect, and of no other.
func TestTransportNamesCallsOfAnyMethod(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t)
	for method, keys := range map[string]int{"PUT": 1, "DELETE": 1, "POST": 1, "GET": 0} {
		s, url := plays(t, status(http.StatusServiceUnavailable), status(http.StatusOK))
		_, _, err := semel.Do(t.Context(), b.Engine, orderCall(method, 0), func(ctx context.Context) (string, error) {
			r := post(t, url, nil).WithContext(client.WithChildKey(ctx, "charge"))
			r.Method = method
			trip(t, new(client.Transport), r)
			return "", nil
		})
		check.Require(t, err)
		if tries := s.arrived(); len(tries) != 2 || len(tries[0].keys) != keys {
			t.Errorf("%s: %v came, want two tries with %d key", method, tries, keys)
		}
	}
}

// TestTransportStopsWhenTheLeaseIsLost, and says so.
func TestTransportStopsWhenTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	s, url := plays(t, hang)
	b := newTestEngine(t)
	a, _, err := adapter.Begin(t.Context(), b.Engine, orderCall("7", time.Second))
	check.Require(t, err)
	defer a.Abandon()
	overtake(t, b)
	r := post(t, url, strings.NewReader("x")).WithContext(client.WithChildKey(a.Context(), "charge"))
	_, err = quick(new(client.Transport)).RoundTrip(r)
	if !errors.Is(err, semel.ErrLeaseLost) {
		t.Errorf("got the error %v, want that the lease was lost", err)
	}
	if n := len(s.arrived()); n > 1 {
		t.Errorf("%d tries came, want no more than the one under way", n)
	}
}

// overtake has another process claim order 7.
func overtake(t *testing.T, b *testEngine) {
	t.Helper()
	other := check.Must(semel.New(b.store, semel.Options{Survive: store.NoFailure}))(t)
	for {
		b.ahead.Add(int64(time.Hour))
		winner, _, err := adapter.Begin(t.Context(), other, orderCall("7", time.Second))
		if winner != nil {
			t.Cleanup(winner.Abandon)
			return
		}
		if !errors.Is(err, semel.ErrInProgress) { // a heartbeat may come in between
			t.Fatal(err)
		}
	}
}
