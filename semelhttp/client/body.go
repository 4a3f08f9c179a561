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

// repeatable returns a copy of r whose body can be sent again, by its GetBody. A body without
// one is read within the remaining time. After an error the body is closed.
func (t *Transport) repeatable(r *http.Request, left time.Duration) (*http.Request, error) {
	again := r.WithContext(r.Context())
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		again.GetBody = func() (io.ReadCloser, error) { return r.Body, nil }
		return again, nil
	case r.GetBody != nil:
		return again, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), left)
	defer cancel()
	text, err := readAll(ctx, r.Body, t.MaxBody)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read request body: %w", err)
	case int64(len(text)) > t.MaxBody:
		return nil, &semel.FieldError{Field: "Body", Reason: fmt.Sprintf(
			"can be sent only once: it has no GetBody and has more than %d bytes; set GetBody", t.MaxBody)}
	case r.ContentLength > 0 && int64(len(text)) != r.ContentLength:
		return nil, &semel.FieldError{
			Field: "ContentLength", Reason: fmt.Sprintf("is %d, and the body has another length", r.ContentLength),
		}
	}
	again.ContentLength = int64(len(text))
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	again.Body, err = again.GetBody()
	return again, err
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
