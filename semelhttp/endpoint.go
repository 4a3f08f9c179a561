package semelhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/errtype"
)

// Endpoint is an operation whose value is the outcome. The edge renders the value,
// in the same way for the first caller, for a retry, and for a record that a probe
// has healed and that never had a response.
type Endpoint[In, T any] struct {
	// Operation is the operation to run. Required.
	Operation *semel.Operation[In]
	// IgnoreTarget compares requests only by the value of Decode. False: the
	// method, the path and the query that the client sent, and the headers of
	// Options.FingerprintHeaders, are compared as well, so that one key at
	// /accounts/1 and at /accounts/2 is two requests. A record that was made
	// without HTTP, by a task for instance, has no target, and is compared by the
	// input alone.
	IgnoreTarget bool
	// Decode reads the request, at most MaxBody bytes, and validates it. It runs
	// before the claim: its error is answered with its *Problem, or 400, and never
	// stored. Required.
	Decode func(*http.Request) (In, error)
	// Run calls semel.Do or semel.DoTx with c, and returns their results. Its
	// context does not end when the client hangs up, but waiting for another
	// caller's attempt does. Required.
	Run func(ctx context.Context, c semel.Call, in In) (v T, replayed bool, err error)
	// Render writes the response, from v and the request alone. Nil: 200, and v as
	// JSON.
	Render func(w http.ResponseWriter, r *http.Request, v T)
	// Refuse returns the problem of a stored failure, from the failure alone. Nil:
	// 422 with the failure's code and message.
	Refuse func(f *semel.Failure) *Problem
}

func (ep Endpoint[In, T]) valid() error {
	const required = "is required"
	switch {
	case ep.Operation == nil:
		return &semel.FieldError{Field: "Operation", Reason: required}
	case ep.Decode == nil:
		return &semel.FieldError{Field: "Decode", Reason: required}
	case ep.Run == nil:
		return &semel.FieldError{Field: "Run", Reason: required}
	default:
		return nil
	}
}

// Handle returns the handler of a typed endpoint. It checks the request's key and
// scope, calls Decode, then Run, and then responds: with Render, or with a problem.
// A *Problem that the operation's function returns is the response, unless the
// effect is then unknown or the error is stored: Refuse renders a stored failure,
// to the first caller as to every other. An error marked semel.NotCommitted, or one that
// the operation's Classify takes for proof that nothing happened, is 503 unavailable with
// Retry-After. Other errors of the function are 500.
//
// Every method is protected. A panic continues.
func Handle[In, T any](ep Endpoint[In, T], o Options) (http.Handler, error) {
	if err := ep.valid(); err != nil {
		return nil, err
	}
	s, err := o.settle()
	if err != nil {
		return nil, err
	}
	if ep.Render == nil {
		ep.Render = renderJSON[T](s)
	}
	if ep.Refuse == nil {
		ep.Refuse = refusal
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ep.serve(s, w, r) }), nil
}

func (ep Endpoint[In, T]) serve(s *settings, w http.ResponseWriter, r *http.Request) {
	ctx := new(adapter.WaitContext).Of(r.Context())
	admitted, err := s.validate(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	in, err := ep.decode(s, r, admitted.request(r))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	v, replayed, err := ep.Run(ctx, ep.call(s, r, &admitted, in), in)
	if denied := s.reauthorize(r, &admitted, replayed, err); denied != nil {
		err = denied
	}
	failure, failed := errtype.Find[*semel.Failure](err)
	markReplayed(w, err == nil && replayed || err != nil && semel.Replayed(err))
	switch {
	case failed:
		s.sendProblem(w, ep.Refuse(failure))
	case errors.Is(err, semel.ErrMismatch):
		s.refuse(w, r, ep.keyReused(err))
	case err != nil:
		s.refuse(w, r, err)
	case replayed:
		ep.Render(w, r, v)
	default:
		ep.Render(w, r, stored(v))
	}
}

// call returns the call of a request.
func (ep Endpoint[In, T]) call(s *settings, r *http.Request, of *checkedRequest, in In) semel.Call {
	c := ep.Operation.Call(of.scope, of.key, in)
	if ep.IgnoreTarget {
		return c
	}
	var to Request
	to.Path, to.Query = target(r)
	to.Method, to.Headers = r.Method, headersOf(r, s.FingerprintHeaders)
	text, _ := to.AppendFingerprint(nil) // never fails
	return c.Bind(text)
}

// keyReused returns the problem of a key that was used for another request, and says in
// which part of it.
func (ep Endpoint[In, T]) keyReused(err error) *Problem {
	other := "method or target"
	if ep.IgnoreTarget || errors.Is(err, callerr.ErrOtherInput) {
		other = "input"
	}
	return problem(codeKeyReused, "The key belongs to a request with another "+other+". This request was not run.")
}

// decode calls Decode with r. came is the request as it was received.
func (ep Endpoint[In, T]) decode(s *settings, came, r *http.Request) (in In, err error) {
	in, err = ep.Decode(r)
	if err == nil {
		return in, nil
	}
	if own := problemIn(err); own != nil {
		return in, own
	}
	s.report(came, http.StatusBadRequest, err)
	field, detail := invalidJSON(err)
	return in, problemOn(field, codeBodyInvalid, detail)
}

// stored returns v as every retry receives it. The first caller's own value may have
// parts that are not stored, or that change when they are encoded. A value that cannot
// be encoded becomes a tombstone, and only this caller gets it.
func stored[T any](v T) T {
	if _, raw := any(v).(semel.Raw); raw {
		return v
	}
	var again T
	if text, err := json.Marshal(v); err != nil || json.Unmarshal(text, &again) != nil {
		return v
	}
	return again
}

func renderJSON[T any](s *settings) func(http.ResponseWriter, *http.Request, T) {
	return func(w http.ResponseWriter, r *http.Request, v T) {
		text, err := json.Marshal(v)
		if err != nil {
			s.refuse(w, r, semel.ErrResultUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n')) // a client that hung up retries
	}
}

// invalidJSON describes the error of a body that encoding/json could not read: the
// field, and the position in the body. It shows no values, and nothing of other
// errors.
func invalidJSON(err error) (field, detail string) {
	wrongType, isType := errtype.Find[*json.UnmarshalTypeError](err)
	syntax, isSyntax := errtype.Find[*json.SyntaxError](err)
	switch {
	case isType:
		kind, _, _ := strings.Cut(wrongType.Value, " ") // without the value
		if wrongType.Field == "" {
			return "body", fmt.Sprintf("The body must not be a JSON %s. Nothing was run.", kind)
		}
		return wrongType.Field, fmt.Sprintf("The field %q must not be a JSON %s. Nothing was run.", wrongType.Field, kind)
	case isSyntax:
		return "body", fmt.Sprintf("The body is not valid JSON: %v, at byte %d. Nothing was run.", syntax, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "body", "The body is not valid JSON: it ends early. Nothing was run."
	case errors.Is(err, io.EOF):
		return "body", "The body is empty. Nothing was run."
	default:
		return "", ""
	}
}
