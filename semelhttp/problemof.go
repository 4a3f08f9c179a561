package semelhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/onetime"
	"github.com/semelgo/semel/store"
)

// DefaultProblemBase is the path of the documentation of problems unless Options
// set another.
const DefaultProblemBase = "/problems/"

// ProblemOf returns the problem for err, and nil for nil. It knows every error of
// package semel. A [*Problem] that err wraps is returned as it is, unless the
// effect of the attempt that returned it is unknown, or happened although the
// function failed; the problem then says that. Errors of other operations that the
// function called have no influence: they are about other keys. An attempt without an
// effect is 503 unavailable, with Retry-After, if its function marked the error with
// semel.NotCommitted, or Classify said so. The text of other errors is not shown.
func ProblemOf(err error) *Problem {
	if err == nil {
		return nil
	}
	if attempt, ok := errtype.Find[*semel.AttemptError](err); !ok || attempt.Verdict == store.NotCommitted {
		if failure, ok := errtype.Find[*semel.Failure](err); ok {
			return refusal(failure)
		}
		if own, ok := errtype.Find[*Problem](err); ok {
			return own
		}
	}
	code, detail := codeOf(err)
	p := problem(code, detail)
	switch code {
	case codeInProgress, codeUnavailable:
		p.RetryAfter = max(semel.RetryAfter(err), time.Second)
	case codeOutcomeUnknown:
		p.Detail = "An earlier request with this key ran the operation. It may or may not have happened."
		if !errors.Is(err, semel.ErrInDoubt) {
			p.Detail = "This request ran the operation. It may or may not have happened."
			p.Status = http.StatusServiceUnavailable
			p.RetryAfter = max(semel.RetryAfter(err), time.Second)
		}
	case codeKeyMalformed:
		p.Field = HeaderKey
	}
	return p
}

// codeOf returns the code of err's problem, and the part of err that may be shown.
func codeOf(err error) (code, detail string) {
	switch attempt, ok := errtype.Find[*semel.AttemptError](err); {
	case ok && attempt.Verdict == store.Committed:
		return codeResultUnavailable, ""
	case callerr.IsTemporary(err):
		return codeUnavailable, "The operation failed and had no effect."
	}
	for _, row := range [...]struct {
		is   error
		code string
	}{
		{semel.ErrOutcomeUnknown, codeOutcomeUnknown},
		{semel.ErrInDoubt, codeOutcomeUnknown},
		{semel.ErrMismatch, codeKeyReused},
		{semel.ErrInProgress, codeInProgress},
		{semel.ErrKeyExpired, codeKeyExpired},
		{onetime.ErrUnknown, codeTokenUnknown},
		{onetime.ErrExpired, codeTokenExpired},
		{semel.ErrResultUnavailable, codeResultUnavailable},
		{semel.ErrUnavailable, codeUnavailable},
		{semel.ErrClosed, codeUnavailable},
		{context.Canceled, codeUnavailable},
		{context.DeadlineExceeded, codeUnavailable},
	} {
		if errors.Is(err, row.is) {
			return row.code, ""
		}
	}
	if field, ok := errtype.Find[*semel.FieldError](err); ok && field.Field == "Key" {
		return codeKeyMalformed, "The key " + field.Reason + "."
	}
	if _, large := errtype.Find[*http.MaxBytesError](err); large {
		return codeBodyTooLarge, ""
	}
	return codeInternal, ""
}

// problem returns this package's own problem with that code.
func problem(code, detail string) *Problem {
	about, _ := pageOf(code)
	if detail == "" {
		detail = about.Means
	}
	return &Problem{
		Type: DefaultProblemBase + code, Title: about.Title, Status: about.Status, Detail: detail, Code: code,
	}
}

// problemOn is problem about a header or a part of the body.
func problemOn(field, code, detail string) *Problem {
	p := problem(code, detail)
	p.Field = field
	return p
}
