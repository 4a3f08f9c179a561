package semelgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
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

// TestProvenFailureMayBeRetried: a handler that says that nothing happened, and chose no status,
// gets its client told to retry with the same key.
func TestProvenFailureMayBeRetried(t *testing.T) {
	t.Parallel()
	engine := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	secret := errors.New("password=x")
	isNothing := func(error) store.Verdict { return store.NotCommitted }
	for name, c := range map[string]struct {
		options semel.OperationOptions[string]
		err     error
		want    codes.Code
	}{
		"marked":            {semel.OperationOptions[string]{}, semel.NotCommitted(secret), codes.Unavailable},
		"classified":        {semel.OperationOptions[string]{Classify: isNothing}, secret, codes.Unavailable},
		"marked, and final": {semel.OperationOptions[string]{}, semel.Final(semel.NotCommitted(&semel.Failure{Code: "no"})), codes.FailedPrecondition},
		"a status, marked":  {semel.OperationOptions[string]{}, semel.NotCommitted(status.Error(codes.NotFound, "x")), codes.NotFound},
	} {
		call := semel.Define("op", c.options).Call(semel.ScopeOf("ann"), name, "in")
		_, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) { return "", c.err })
		got := semelgrpc.StatusOf(err)
		if got.Code() != c.want || strings.Contains(got.Message(), secret.Error()) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if isUnavailable := c.want == codes.Unavailable; isUnavailable != (retryDelay(got) > 0) {
			t.Errorf("%s: a delay of %v", name, retryDelay(got))
		}
	}
}

// retryDelay returns the delay of the status's RetryInfo, and zero if it has none.
func retryDelay(s *status.Status) time.Duration {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// TestErrorsOfClients: each error of package semel that a server reports as a status is that error
// again at the client, with the reason and the status.
func TestErrorsOfClients(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]error{
		"IN_DOUBT": semel.ErrInDoubt, "OUTCOME_UNKNOWN": semel.ErrOutcomeUnknown, "KEY_REUSED": semel.ErrMismatch, "IN_PROGRESS": semel.ErrInProgress,
		"KEY_EXPIRED": semel.ErrKeyExpired, "RESULT_UNAVAILABLE": semel.ErrResultUnavailable, "UNAVAILABLE": semel.ErrUnavailable,
		"KEY_INVALID": &semel.FieldError{Field: "Key", Reason: "is empty"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		sent := semelgrpc.StatusOf(want)
		err := retrying(t, semelgrpc.ClientOptions{})(ctx, method, payment(5), answer(0), nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				cancel() // no further try
				return status.FromProto(sent.Proto()).Err()
			})
		cancel()
		var call *semelgrpc.CallError
		if !errors.As(err, &call) || call.Reason != reason || !proto.Equal(call.GRPCStatus().Proto(), sent.Proto()) {
			t.Errorf("%v arrives as %v, want a CallError with the reason %s and the status", want, err, reason)
		}
		if reason == "KEY_INVALID" {
			want = semel.ErrInvalid
		}
		if !errors.Is(err, want) {
			t.Errorf("%v arrives as %v", want, err)
		}
	}
}
