package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/semelhttp/client"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var (
	charge     = semel.Define("charge", semel.OperationOptions[semelhttp.Request]{})
	boostGroup = semel.Define("boost_group", semel.OperationOptions[string]{Policy: semel.Keyed()})
)

// An operation charges a customer at another server, and the reply is lost. The
// client retries with the operation's child key, so the charge is made once, and
// the operation receives this charge.
func ExampleTransport() {
	payments := paymentServer()
	defer payments.Close()
	retrying := &http.Client{Transport: &client.Transport{Base: new(losesOne), MinBackoff: time.Millisecond}}
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	id, _, err := semel.Do(context.Background(), engine, boostGroup.Call(semel.ScopeOf("ann"), "boost 1", "group 1"),
		func(ctx context.Context) (string, error) {
			ctx = client.WithChildKey(ctx, "charge")
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, payments.URL, strings.NewReader(`{"amount":500}`))
			if err != nil {
				return "", err
			}
			resp, err := retrying.Do(r)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return string(text), err
		})
	fmt.Println(id, err)
	// Output:
	// the answer is lost
	// charge 1 <nil>
}

// losesOne loses the first response that comes back.
type losesOne struct{ lost atomic.Bool }

func (l *losesOne) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lost.CompareAndSwap(false, true) {
		fmt.Println("the answer is lost")
		resp.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return resp, err
}

// paymentServer numbers the charges that it makes.
func paymentServer() *httptest.Server {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	once, err := semelhttp.Atomic(engine, charge, semelhttp.Options{
		ScopeFunc: func(*http.Request) (semel.Scope, error) { return semel.Shared(), nil },
	})
	if err != nil {
		panic(err)
	}
	var charges atomic.Int64
	return httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "charge %d", charges.Add(1))
	})))
}
