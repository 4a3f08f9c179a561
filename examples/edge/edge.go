// Package edge is a small HTTP adapter: it runs a handler once for each
// Idempotency-Key of a user, and answers retries with the stored response. It shows
// what package adapter gives to authors of edges. Package semelhttp does much more.
package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// maxBody is the largest request body, in bytes.
const maxBody = 1 << 20

// Operation is the type of the operations that [Once] runs. The input is the body.
type Operation = semel.Operation[semel.Raw]

// Once returns a handler that runs next once for each key. scopeOf returns the user
// of a request.
//
// A request without a key is refused with 400, and a key that was used for another
// request with 422. A caller that finds the key's first request running receives 409
// with Retry-After. A response from 500 up is not stored: the effect of the attempt
// is unknown, and the operation's policy decides what happens to the key.
func Once(engine semel.Runner, op *Operation, scopeOf func(*http.Request) semel.Scope, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "the body cannot be read, or is too large", http.StatusBadRequest)
			return
		}
		// Two requests with the same key and body are different if their target is.
		call := op.Call(scopeOf(r), r.Header.Get("Idempotency-Key"), body).Bind([]byte(r.Method + " " + r.URL.RequestURI()))
		// A caller that hangs up stops waiting for the first request. It does not
		// stop an attempt that has begun.
		ctx := adapter.WithWaitContext(context.WithoutCancel(r.Context()), r.Context())
		attempt, outcome, err := adapter.Begin(ctx, engine, call)
		if attempt != nil {
			outcome, err = run(attempt, next, r, body) //nolint:contextcheck // an attempt has its own context
		}
		if err != nil {
			refuse(w, err)
			return
		}
		replay(w, outcome)
	})
}

// errNoAnswer means that the handler's response says nothing about the effect.
var errNoAnswer = errors.New("the handler answered with a server error")

// run runs the handler as an attempt, and returns the outcome that every caller of
// the key receives.
func run(attempt *adapter.Attempt, next http.Handler, r *http.Request, body []byte) (*adapter.Outcome, error) {
	defer attempt.Abandon() // for a panic
	recorded := recorder{response: Response{Status: http.StatusOK, Header: make(http.Header)}}
	request := r.WithContext(attempt.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(&recorded, request)
	if recorded.response.Status >= http.StatusInternalServerError {
		return attempt.End(nil, errNoAnswer)
	}
	return attempt.End(recorded.response, nil)
}

// Response is the result of the operation, as it is stored.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// recorder is the writer of the handler.
type recorder struct {
	response Response
	wrote    bool
}

// Header returns the header of the response.
func (r *recorder) Header() http.Header { return r.response.Header }

// WriteHeader sets the status.
func (r *recorder) WriteHeader(status int) {
	if !r.wrote && status >= http.StatusOK {
		r.response.Status, r.wrote = status, true
	}
}

// Write appends to the body.
func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = true
	r.response.Body = append(r.response.Body, b...)
	return len(b), nil
}

// replay sends the stored response.
func replay(w http.ResponseWriter, outcome *adapter.Outcome) {
	var stored Response
	if err := outcome.Decode(&stored); err != nil {
		refuse(w, err)
		return
	}
	maps.Copy(w.Header(), stored.Header)
	if outcome.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(stored.Status)
	_, _ = w.Write(stored.Body)
}

// refuse answers an error of the engine.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, semel.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, semel.ErrMismatch):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, semel.ErrInProgress), errors.Is(err, semel.ErrInDoubt):
		status = http.StatusConflict
	case errors.Is(err, semel.ErrUnavailable):
		status = http.StatusServiceUnavailable
	}
	if wait := semel.RetryAfter(err); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
