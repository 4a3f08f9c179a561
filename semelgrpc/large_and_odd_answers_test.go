package semelgrpc_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

// statusError is an error of an application that has a status.
type statusError struct{ status *status.Status }

func (e statusError) Error() string              { return "an error with a status" }
func (e statusError) GRPCStatus() *status.Status { return e.status }

// TestErrorsAreNeverOK: an error is not sent as success, also if its status is OK or missing.
func TestErrorsAreNeverOK(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*status.Status{"OK": status.New(codes.OK, ""), "none": nil} {
		wrong := statusError{s}
		for _, err := range []error{wrong, semel.NotCommitted(wrong), semel.Final(wrong)} {
			for _, inTx := range []bool{false, true} {
				r := newRig(t, setUp{inTx: inTx, handler: func(context.Context, int64, message) (any, error) { return nil, err }})
				for range 2 {
					if _, _, got := r.call(t, "k", payment(5)); status.Code(got) == codes.OK {
						t.Errorf("the status %s, with a transaction: %v: %#v is sent as success", name, inTx, err)
					}
				}
			}
		}
	}
	if s := semelgrpc.StatusOf(&semel.Failure{Code: "\xff", Message: "refused"}); s.Code() != codes.FailedPrecondition {
		t.Errorf("a failure with an invalid code is %v", s)
	}
}

// TestOddRefusals: a refusal keeps its code for every caller, also if its message is not UTF-8 or is larger
// than a store keeps. The handler runs once.
func TestOddRefusals(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not UTF-8":            "no file \xff",
		"large":                strings.Repeat("x", 2<<20),
		"large, and not UTF-8": strings.Repeat("\xff", 2<<20),
		"cut within a rune":    "x" + strings.Repeat("é", 1<<20),
	} {
		for _, inTx := range []bool{false, true} {
			r := newRig(t, setUp{inTx: inTx, handler: func(context.Context, int64, message) (any, error) {
				return nil, status.Error(codes.NotFound, text)
			}})
			var first string
			for i := range 2 {
				_, replayed, err := r.call(t, "k", payment(5))
				if status.Code(err) != codes.NotFound || replayed != (i > 0) || r.runs.Load() != 1 {
					t.Errorf("%s, with a transaction: %v: call %d: %.200v, replayed: %v, after %d runs", name, inTx, i, err, replayed, r.runs.Load())
				}
				if i == 0 {
					first = err.Error()
				}
				check.Equal(t, err.Error(), first, "%s: every caller receives the same", name)
			}
		}
	}
}

// TestLargeResponse: the first caller receives a response that is larger than the store keeps, and later
// ones learn that the call succeeded.
func TestLargeResponse(t *testing.T) {
	t.Parallel()
	large := func(_ context.Context, run int64, _ message) (any, error) {
		m := answer(run)
		m.SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 15, protowire.BytesType), make([]byte, 2<<20)))
		return m, nil
	}
	var r *rig
	for name, u := range map[string]setUp{
		"Do":   {handler: large},
		"DoTx": {handler: large, inTx: true},
		"InTx": {
			operation: semel.OperationOptions[semelgrpc.Request[message]]{Policy: semel.Atomic()},
			handler: func(ctx context.Context, run int64, in message) (any, error) {
				return semel.InTx(ctx, r.engine, func(ctx context.Context, _ *sql.Tx) (any, error) { return large(ctx, run, in) })
			},
		},
	} {
		r = newRig(t, u)
		run, replayed, err := r.call(t, "k", payment(5))
		check.NoError(t, err, "%s: the first call", name)
		if run != 1 || replayed {
			t.Errorf("%s: the first caller receives the response of run %d, replayed: %v", name, run, replayed)
		}
		_, _, err = r.call(t, "k", payment(5))
		if reasonOf(err) != "RESULT_UNAVAILABLE" || r.runs.Load() != 1 {
			t.Errorf("%s: a later call: %v, after %d runs", name, err, r.runs.Load())
		}
	}
}
