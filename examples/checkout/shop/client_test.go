package shop_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	semelclient "github.com/semelgo/semel/semelhttp/client"
)

// answer is a response that was read.
type answer struct {
	status   int
	body     string
	replayed bool
}

// client is a customer's client. It retries until it has an answer, each time at the
// next of the shop's processes.
type client struct{ http *http.Client }

func newClient(t *testing.T, shops ...*process) client {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return client{&http.Client{Transport: &semelclient.Transport{
		Base: &inTurn{base: base, shops: shops}, Budget: patience,
		MinBackoff: 20 * time.Millisecond, MaxBackoff: 500 * time.Millisecond,
	}}}
}

// inTurn sends each request to the next process.
type inTurn struct {
	base  http.RoundTripper
	shops []*process
	next  atomic.Uint64
}

func (b *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = b.shops[b.next.Add(1)%uint64(len(b.shops))].Addr
	return b.base.RoundTrip(r)
}

// pay asks to pay for an order, under the order's own name as the key.
func (c client) pay(ctx context.Context, t *testing.T, key, body string) (a answer) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop/orders", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return a
	}
	r.SetBasicAuth("ada", "")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(semelhttp.HeaderKey, key)
	resp, err := c.http.Do(r)
	if err != nil {
		t.Errorf("%s: %v", key, err)
		return a
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	check.NoError(t, err, "%s", key)
	return answer{resp.StatusCode, string(text), resp.Header.Get(semelhttp.HeaderReplayed) == "true"}
}
