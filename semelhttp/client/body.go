package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/semelgo/semel"
)

// requestBody is the body of a call.
type requestBody struct {
	first  io.ReadCloser                 // body of the first try
	reopen func() (io.ReadCloser, error) // body of a later try
	length int64                         // as Request.ContentLength
}

// bodyOf makes sure that the body of r can be sent again, within the remaining
// time. After an error the body is closed.
func (t *Transport) bodyOf(r *http.Request, left time.Duration) (requestBody, error) {
	b := requestBody{r.Body, r.GetBody, r.ContentLength}
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		b.reopen = func() (io.ReadCloser, error) { return r.Body, nil }
		return b, nil
	case r.GetBody != nil:
		return b, nil
	case r.ContentLength > t.MaxBody:
		closeBody(r)
		return b, onlyOnce(t.MaxBody)
	}
	ctx, cancel := context.WithTimeout(r.Context(), left)
	defer cancel()
	text, err := readAll(ctx, r.Body, t.MaxBody)
	switch {
	case err != nil:
		return b, fmt.Errorf("read request body: %w", err)
	case r.ContentLength > 0 && int64(len(text)) != r.ContentLength:
		return b, &semel.FieldError{
			Field: "ContentLength", Reason: fmt.Sprintf("is %d, and the body has another length", r.ContentLength),
		}
	case int64(len(text)) > t.MaxBody:
		return b, onlyOnce(t.MaxBody)
	}
	b.length = int64(len(text))
	b.reopen = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	b.first, err = b.reopen()
	return b, err
}

func onlyOnce(most int64) error {
	return &semel.FieldError{Field: "Body", Reason: fmt.Sprintf(
		"can be sent only once: it has no GetBody and is not known to have at most %d bytes; set GetBody", most)}
}

// readAll reads body until it is longer than most bytes, and closes it. It also
// closes it when ctx ends, so that a body without an end does not block longer.
func readAll(ctx context.Context, body io.ReadCloser, most int64) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if !stop() {
		return nil, context.Cause(ctx)
	}
	_ = body.Close()
	return text, err
}

// hold reads the body of resp up to most bytes, so that it is read from memory, and reports
// whether that is all of it; the rest of a longer one is read from the connection.
func hold(resp *http.Response, most int64) (whole bool, err error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		_ = resp.Body.Close()
		return false, fmt.Errorf("read response body: %w", err)
	}
	if int64(len(text)) > most {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
		return false, nil
	}
	_ = resp.Body.Close()
	resp.Body = bufferedBody{bytes.NewReader(text)}
	return true, nil
}

// bufferedBody is a body that was read.
type bufferedBody struct{ *bytes.Reader }

func (bufferedBody) Close() error { return nil }
