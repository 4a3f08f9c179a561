package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportSendsTheSameBytes for every source of the body.
func TestTransportSendsTheSameBytes(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\x00é\n", 200_000)
	for name, row := range map[string]struct {
		getBody bool
		length  int64
	}{
		"GetBody":                 {true, int64(len(text))},
		"GetBody, unknown length": {true, -1},
		"known length":            {false, int64(len(text))},
		"unknown length":          {false, -1},
		"length not said":         {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := plays(t, reset(""), status(http.StatusServiceUnavailable), status(http.StatusCreated))
			r, b := post(t, url, nil), newBody(text)
			r.Body, r.ContentLength = b, row.length
			if row.getBody {
				r.GetBody = func() (io.ReadCloser, error) { return newBody(text), nil }
			}
			got := trip(t, new(client.Transport), r)
			check.Equal(t, got.status, http.StatusCreated, "status")
			s.wantSame(t, 3, text)
			b.wantClosed(t)
		})
	}
}

// TestTransportLetsItsBaseRetry: what Base tries by itself has the same
// bytes, and their number.
func TestTransportLetsItsBaseRetry(t *testing.T) {
	t.Parallel()
	b := &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) {
		if r.GetBody == nil || r.ContentLength != 5 {
			t.Errorf("the length is %d, and GetBody there: %v", r.ContentLength, r.GetBody != nil)
			return respond(r, http.StatusOK), nil
		}
		for range 2 {
			again, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			if text, err := io.ReadAll(again); string(text) != "bytes" || err != nil {
				t.Errorf("GetBody gave %q, %v", text, err)
			}
		}
		return respond(r, http.StatusOK), nil
	}}
	trip(t, &client.Transport{Base: b}, post(t, "http://x", newBody("bytes")))
}

// TestTransportRefusesABodyForOneTry before anything is sent.
func TestTransportRefusesABodyForOneTry(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		length      int64
		text, field string
	}{
		"too long":                {11, "0123456789a", "Body"},
		"unknown and too long":    {-1, "0123456789a", "Body"},
		"not said and too long":   {0, "0123456789a", "Body"},
		"not as long as was said": {10, "012", "ContentLength"},
		"longer than was said":    {3, "0123", "ContentLength"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := plays(t, status(http.StatusOK))
			b := newBody(row.text)
			r := post(t, url, b)
			r.ContentLength = row.length
			_, err := quick(&client.Transport{MaxBody: 10}).RoundTrip(r)
			wantFieldError(t, err, row.field)
			b.wantClosed(t)
			check.Equal(t, len(s.arrived()), 0, "requests were sent")
		})
	}
}

// TestTransportReportsABodyThatCannotBeRead, and one that cannot be had again.
func TestTransportReportsABodyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	torn := errors.New("torn")
	s, url := plays(t, status(http.StatusServiceUnavailable))
	b := bodyOf(io.MultiReader(strings.NewReader("ab"), failing{torn}))
	if _, err := quick(new(client.Transport)).RoundTrip(post(t, url, b)); !errors.Is(err, torn) {
		t.Errorf("got the error %v, want the body's", err)
	}
	b.wantClosed(t)
	s.none(t)

	r := post(t, url, newBody("x"))
	r.GetBody = func() (io.ReadCloser, error) { return nil, torn }
	_, err := quick(new(client.Transport)).RoundTrip(r)
	if !errors.Is(err, torn) || !errors.Is(err, semel.ErrOutcomeUnknown) {
		t.Errorf("got the error %v, want GetBody's, and that the outcome is unknown", err)
	}
	s.wantSame(t, 1, "x")
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
