package semelgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelgrpc"
	"github.com/semelgo/semel/store"
)

func TestStatusOf(t *testing.T) {
	t.Parallel()
	secret := errors.New("password=x")
	for name, test := range map[string]struct {
		err    error
		code   codes.Code
		reason string
	}{
		"nil":                        {nil, codes.OK, ""},
		"in progress":                {semel.ErrInProgress, codes.Aborted, "IN_PROGRESS"},
		"in doubt":                   {semel.ErrInDoubt, codes.FailedPrecondition, "IN_DOUBT"},
		"unknown":                    {semel.ErrOutcomeUnknown, codes.Unavailable, "OUTCOME_UNKNOWN"},
		"mismatch":                   {semel.ErrMismatch, codes.InvalidArgument, "KEY_REUSED"},
		"expired":                    {semel.ErrKeyExpired, codes.FailedPrecondition, "KEY_EXPIRED"},
		"no result":                  {semel.ErrResultUnavailable, codes.FailedPrecondition, "RESULT_UNAVAILABLE"},
		"store":                      {fmt.Errorf("%w: %w", semel.ErrUnavailable, secret), codes.Unavailable, "UNAVAILABLE"},
		"closed":                     {semel.ErrClosed, codes.Unavailable, "UNAVAILABLE"},
		"key":                        {&semel.FieldError{Field: "Key", Reason: "is empty"}, codes.InvalidArgument, "KEY_INVALID"},
		"fault of the server":        {&semel.FieldError{Field: "Scope", Reason: "is zero"}, codes.Internal, ""},
		"other":                      {secret, codes.Internal, ""},
		"cancelled":                  {context.Canceled, codes.Canceled, ""},
		"failure of an operator":     {&semel.Failure{Code: "no_stock", Message: "Sold out."}, codes.FailedPrecondition, "no_stock"},
		"handler, nothing committed": {&semel.AttemptError{Verdict: store.NotCommitted, Err: status.Error(codes.Internal, "x")}, codes.Internal, ""},
		"handler, unknown": {
			&semel.AttemptError{Verdict: store.Unknown, Err: status.Error(codes.NotFound, "x")}, codes.Unavailable, "OUTCOME_UNKNOWN",
		},
		"handler, committed": {
			&semel.AttemptError{Verdict: store.Committed, Err: status.Error(codes.NotFound, "x")}, codes.FailedPrecondition, "RESULT_UNAVAILABLE",
		},
	} {
		got := semelgrpc.StatusOf(test.err)
		if got.Code() != test.code || reasonOf(got.Err()) != test.reason {
			t.Errorf("%s: %v (%s), want %v (%s)", name, got, reasonOf(got.Err()), test.code, test.reason)
		}
		if errors.Is(test.err, secret) && got.Message() == secret.Error() {
			t.Errorf("%s: the status shows %q", name, got.Message())
		}
	}
}
