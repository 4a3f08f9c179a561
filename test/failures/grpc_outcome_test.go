package failures_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// The first client and its retries receive the same, also a status with details.
func grpcEqualAnswers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	refusal, err := status.New(codes.FailedPrecondition, "sold out: é").WithDetails(&errdetails.ErrorInfo{Reason: "SOLD_OUT", Domain: "shop"})
	check.Require(t, err, "WithDetails")
	for name, answer := range map[string]struct {
		value string
		err   error
	}{"text": {"é\x00 é", nil}, "refusal": {"", refusal.Err()}} {
		conn := w.serveMode(t, by, func(_ context.Context, effect func() error) (string, error) {
			if answer.err != nil {
				return "", answer.err
			}
			return answer.value, effect()
		})
		first, second := callGRPCTwice(t, conn, name)
		check.Equal(t, first.value, answer.value, "%s: the first reply", name)
		check.Equal(t, status.Code(first.err), status.Code(answer.err), "%s: the first status", name)
		second.wantReplay(t, first)
		callGRPC(t.Context(), conn, name).wantReplay(t, first)
	}
	w.wantEffects(t, "ann/text", 1)
	w.wantEffects(t, "ann/refusal", 0)
}

// Under Atomic only a rolled-back transaction of InTx proves that there was no effect.
func grpcWithoutInTx[Tx any](t *testing.T, w *fixture[Tx], _ handlerMode) {
	o := w.grpcOperation(leased)
	boom := status.Error(codes.Internal, "boom")
	for name, tt := range map[string]struct {
		handler grpc.UnaryHandler
		reason  string // empty: the handler's own status
		state   store.State
	}{
		"error":   {func(context.Context, any) (any, error) { return nil, boom }, "OUTCOME_UNKNOWN", store.Pending},
		"success": {func(context.Context, any) (any, error) { return wrapperspb.String("v"), nil }, "OUTCOME_UNKNOWN", store.InDoubt},
		"rolled back": {w.inMode(w.runner, leased, func(_ context.Context, effect func() error) (string, error) {
			return "", errors.Join(boom, effect())
		}), "", store.Pending},
	} {
		r := callGRPC(t.Context(), w.serveGRPC(t, w.runner, leased, o, tt.handler), name)
		check.Equal(t, r.reason(), tt.reason, "%s: the reason of %v", name, r.err)
		check.Equal(t, w.grpcRecord(t, name).State, tt.state, "%s: the record", name)
	}
	w.wantEffects(t, "ann/rolled back", 0)
}

// grpcRecord returns the record of ann's key.
func (w *fixture[Tx]) grpcRecord(t *testing.T, key string) store.Record {
	t.Helper()
	r, _, err := admin.Get(t.Context(), w.runner, w.op("grpc"), semel.ScopeOf("ann"), key)
	check.Require(t, err, "Get")
	return r
}

// A record that an operator settles is kept for the retention in the record, and its client
// gets the result.
func grpcStoredRetention[Tx any](t *testing.T, w *fixture[Tx], _ handlerMode) {
	const kept = 30 * 24 * time.Hour
	o := w.grpcOperation(outside) // Hold
	o.Retention = kept
	conn := w.serveGRPC(t, w.runner, outside, o, func(context.Context, any) (any, error) { return nil, status.Error(codes.Unavailable, "down") })
	first, second := callGRPCTwice(t, conn, "k")
	check.Equal(t, first.reason(), "OUTCOME_UNKNOWN", "the first reply: %v", first.err)
	check.Equal(t, second.reason(), "IN_DOUBT", "the second reply: %v", second.err)
	_, err := admin.Resolve(t.Context(), w.another(t), admin.Resolution{
		ID: w.grpcRecord(t, "k").ID, To: store.Failed, Failure: &semel.Failure{Code: "refunded"}, Actor: "me", Reason: "seen",
	})
	check.NoError(t, err, "Resolve")
	check.Equal(t, w.grpcRecord(t, "k").Expire > kept-time.Hour, true, "the record is kept for the retention of its operation")
	third := callGRPC(t.Context(), conn, "k")
	check.Equal(t, third.reason(), "refunded", "the reply after the decision: %v", third.err)
}

// The marks of an inner operation's error do not affect the call.
func grpcInnerMarks[Tx any](t *testing.T, w *fixture[Tx], _ handlerMode) {
	inner := semel.Define(w.op("inner"), semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), "k", "in")
	for name, mark := range map[string]func(error) error{"NotCommitted": semel.NotCommitted, "Final": semel.Final} {
		conn := w.serveGRPC(t, w.runner, outside, w.grpcOperation(outside), func(ctx context.Context, _ any) (any, error) {
			_, _, err := semel.Do(ctx, w.runner, inner, func(context.Context) (string, error) { return "", mark(errors.New("boom")) })
			return nil, err
		})
		r := callGRPC(t.Context(), conn, name)
		check.Equal(t, r.reason(), "OUTCOME_UNKNOWN", "%s: %v", name, r.err)
		check.Equal(t, w.grpcRecord(t, name).State, store.InDoubt, "%s: the record", name)
	}
}
