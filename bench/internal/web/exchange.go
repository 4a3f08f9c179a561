package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/semelhttp"
)

// writer discards the response, and counts its bytes.
type writer struct {
	header http.Header
	status int
	size   int
}

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) WriteHeader(status int)      { w.status = status }
func (w *writer) Write(p []byte) (int, error) { w.size += len(p); return len(p), nil }

// body can be read repeatedly.
type body struct{ bytes.Reader }

func (*body) Close() error { return nil }

// client sends the same request again and again, each time with the given key. Its
// own cost is small, and the same for all sides.
type client struct {
	request *http.Request
	writer  writer
	text    []byte
	body    body
	key     []string
}

func newClient() *client {
	c := &client{
		text: []byte(`{"account":"DE02120300000000202051","amount":4200,"currency":"EUR","note":"semel once, a single time."}`),
		key:  []string{""}, writer: writer{header: make(http.Header)},
	}
	c.request = httptest.NewRequest(http.MethodPost, "/payments", nil) //nolint:noctx // the request is never cancelled
	c.request.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"*/*"}, "User-Agent": {"bench"}, semelhttp.HeaderKey: c.key,
	}
	c.request.ContentLength = int64(len(c.text))
	return c
}

func (c *client) send(h http.Handler, key string) {
	clear(c.writer.header)
	c.writer.status, c.writer.size = 0, 0
	c.body.Reset(c.text)
	c.request.Body, c.key[0] = &c.body, key
	h.ServeHTTP(&c.writer, c.request)
}

// check returns what is wrong with the last response.
func (c *client) check(replayed bool) error {
	if c.writer.status != http.StatusCreated || c.writer.size != payment.Size {
		return fmt.Errorf("answered %d with %d bytes", c.writer.status, c.writer.size)
	}
	if got := c.writer.header.Get(semelhttp.HeaderReplayed) == "true"; got != replayed {
		return fmt.Errorf("replayed is %t", got)
	}
	return nil
}

// bare reads the request and responds with a payment.
func bare() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(payment.Result())
	})
}
