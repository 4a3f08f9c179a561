package semelhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/semelgo/semel"
)

// payload is the body of a call.
type payload struct {
	first  io.ReadCloser                 // the body of the first try
	again  func() (io.ReadCloser, error) // those of the others; nil: there can be none
	length int64                         // as Request.ContentLength
}

// payloadOf makes sure that the body of r can be sent again, within the time
// that is left. An error has closed it.
func (t *Transport) payloadOf(r *http.Request, left time.Duration) (payload, error) {
	unknown := r.ContentLength <= 0
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		same := func() (io.ReadCloser, error) { return r.Body, nil }
		return payload{r.Body, same, r.ContentLength}, nil
	case r.GetBody != nil:
		return payload{r.Body, r.GetBody, r.ContentLength}, nil
	case t.StreamOnce && (unknown || r.ContentLength > t.MaxBody):
		return payload{r.Body, nil, r.ContentLength}, nil
	case r.ContentLength > t.MaxBody:
		closeBody(r)
		return payload{}, onlyOnce(t.MaxBody)
	}
	ctx, cancel := context.WithTimeout(r.Context(), left)
	defer cancel()
	text, err := readAll(ctx, r.Body, t.MaxBody)
	switch {
	case err != nil:
		return payload{}, err
	case !unknown && int64(len(text)) != r.ContentLength:
		return payload{}, &semel.FieldError{
			Field: "ContentLength", Reason: fmt.Sprintf("is %d, and the body has another length", r.ContentLength),
		}
	case int64(len(text)) > t.MaxBody:
		return payload{}, onlyOnce(t.MaxBody)
	}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	first, err := again()
	return payload{first, again, int64(len(text))}, err
}

func onlyOnce(most int64) error {
	return &semel.FieldError{Field: "Body", Reason: fmt.Sprintf(
		"can be sent only once: it has no GetBody and is not known to have at most %d bytes; set GetBody, or Transport.StreamOnce", most)}
}

// readAll reads body until it is known to be longer than most bytes, and closes
// it; also when ctx ends, so that a body that never ends does not outlast it.
func readAll(ctx context.Context, body io.ReadCloser, most int64) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if !stop() {
		return nil, fmt.Errorf("read request body: %w", context.Cause(ctx))
	}
	_ = body.Close()
	if err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	return text, nil
}

// hold reads the body of resp up to most bytes and lets it be read from memory;
// what is longer is read on from where it comes.
func hold(resp *http.Response, most int64) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		_ = resp.Body.Close()
		return fmt.Errorf("read response body: %w", err)
	}
	if int64(len(text)) > most {
		resp.Body = joined{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
		return nil
	}
	_ = resp.Body.Close()
	resp.Body = held{bytes.NewReader(text)}
	return nil
}

// held is a body that was read.
type held struct{ *bytes.Reader }

func (held) Close() error { return nil }

// rewind lets a body that was read be read from its start.
func rewind(resp *http.Response) {
	if h, ok := resp.Body.(held); ok {
		_, _ = h.Seek(0, io.SeekStart) // never fails
	}
}

// joined is a body whose beginning was read.
type joined struct {
	io.Reader
	io.Closer
}
