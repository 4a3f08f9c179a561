package semelgrpc

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// Domain is the domain of the ErrorInfo in statuses of this package.
const Domain = "semel"

// reason is a row of the table of errors.
type reason struct {
	err     error
	name    string
	code    codes.Code
	message string
	retry   bool // the status has a RetryInfo
}

// reasons returns the table. An error that matches several rows is the first of them.
func reasons() []reason {
	unavailable := "nothing was done; try again with the same key"
	return []reason{
		{semel.ErrInDoubt, "IN_DOUBT", codes.FailedPrecondition, "it is not known whether an earlier call with this key took place; an operator has to decide", false},
		{semel.ErrOutcomeUnknown, "OUTCOME_UNKNOWN", codes.Unavailable, "it is not known whether the call took place; retry with the same key", true},
		{semel.ErrMismatch, "KEY_REUSED", codes.InvalidArgument, "the key was used for another request", false},
		{semel.ErrInProgress, "IN_PROGRESS", codes.Aborted, "another call with this key is running", true},
		{semel.ErrKeyExpired, "KEY_EXPIRED", codes.FailedPrecondition, "the time in the key is too old or in the future", false},
		{semel.ErrResultUnavailable, "RESULT_UNAVAILABLE", codes.FailedPrecondition, "the call succeeded, and its response cannot be returned again", false},
		{semel.ErrUnavailable, "UNAVAILABLE", codes.Unavailable, unavailable, true},
		{semel.ErrClosed, "UNAVAILABLE", codes.Unavailable, unavailable, true},
		{semel.ErrInvalid, "KEY_INVALID", codes.InvalidArgument, "the key is missing or malformed", false},
	}
}

// StatusOf returns the status of an error of a call of package semel, and OK for nil. The status
// that the handler returned is kept, unless its effect is unknown or was committed nevertheless. An
// error that the handler marked with semel.NotCommitted, or of which the operation's Classify says
// so, is UNAVAILABLE with a RetryInfo.
// The texts of other errors are not shown.
func StatusOf(err error) *status.Status {
	if err == nil {
		return status.New(codes.OK, "")
	}
	attempt, attempted := errtype.Find[*semel.AttemptError](err)
	if failure, ok := errtype.Find[*semel.Failure](err); ok && (!attempted || attempt.Verdict == store.NotCommitted) {
		return statusOfFailure(failure)
	}
	if attempted && attempt.Verdict == store.Committed {
		return semelStatus(reasons()[5], 0)
	}
	if own, ok := handlerStatus(err); ok && (!attempted || attempt.Verdict == store.NotCommitted) {
		return own
	}
	if callerr.IsTemporary(err) {
		return semelStatus(reason{name: "UNAVAILABLE", code: codes.Unavailable, message: noEffect, retry: true}, semel.RetryAfter(err))
	}
	for _, r := range reasons() {
		if field, ok := errtype.Find[*semel.FieldError](err); errors.Is(r.err, semel.ErrInvalid) && (!ok || field.Field != "Key") {
			continue // a fault of the server
		}
		if errors.Is(err, r.err) {
			return semelStatus(r, semel.RetryAfter(err))
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err)
	}
	return status.New(codes.Internal, "internal error")
}

const noEffect = "the call failed and had no effect; try again with the same key"

// handlerStatus returns the status that a handler chose. The status OK, which an error may have by
// mistake, is none: it would say that the call has succeeded.
func handlerStatus(err error) (*status.Status, bool) {
	own, ok := errtype.Find[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return nil, false
	}
	s := own.GRPCStatus()
	if s.Code() == codes.OK {
		return nil, false
	}
	return storable(s), true
}

// maxStatus is the largest size of a status that is stored with its details, in bytes, and maxMessage
// that of the message of a larger one. Clients accept even less in the trailers of a response.
const (
	maxStatus  = 64 << 10
	maxMessage = 4 << 10
)

// storable returns s in a form that can be stored and sent: with a message of UTF-8, and without its
// details if it is too large.
func storable(s *status.Status) *status.Status {
	p := s.Proto()
	if proto.Size(p) > maxStatus {
		p.Details, p.Message = nil, p.Message[:min(len(p.GetMessage()), maxMessage)]
	} else if utf8.ValidString(p.GetMessage()) {
		return s
	}
	p.Message = strings.ToValidUTF8(p.GetMessage(), "\uFFFD")
	return status.FromProto(p)
}

func semelStatus(r reason, after time.Duration) *status.Status {
	s := status.New(r.code, r.message)
	s, _ = s.WithDetails(&errdetails.ErrorInfo{Reason: r.name, Domain: Domain}) // fails for OK only
	if r.retry {
		s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(max(after, minRetryDelay))})
	}
	return s
}

// minRetryDelay is the least delay that a client is asked to wait.
const minRetryDelay = 100 * time.Millisecond

// CallError is a status of the server that reports an error of package semel.
type CallError struct {
	// Reason is that of the table in the package's documentation.
	Reason string
	status *status.Status
	err    error
}

// Error returns the status.
func (e *CallError) Error() string { return "semelgrpc: " + e.status.Err().Error() }

// GRPCStatus returns the status.
func (e *CallError) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the error of package semel.
func (e *CallError) Unwrap() error { return e.err }

// errorOf returns the error for a status that a client received.
func errorOf(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, detail := range s.Details() {
		info, ok := detail.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != Domain {
			continue
		}
		for _, r := range reasons() {
			if r.name == info.GetReason() {
				return &CallError{Reason: r.name, status: s, err: r.err}
			}
		}
	}
	return err
}

// retryDelay returns the delay that the server asks for.
func retryDelay(s *status.Status) (time.Duration, bool) {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}
