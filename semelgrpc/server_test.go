package semelgrpc_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

// bothWays runs a test for Do and for DoTx.
func bothWays(t *testing.T, test func(t *testing.T, u setUp)) {
	for _, inTx := range []bool{false, true} {
		t.Run(fmt.Sprintf("inTx=%t", inTx), func(t *testing.T) {
			t.Parallel()
			test(t, setUp{inTx: inTx})
		})
	}
}

func TestRetriesReceiveTheStoredResponse(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, u setUp) {
		r := newRig(t, u)
		for i := range 3 {
			if run, replayed, err := r.call(t, "k", payment(5)); run != 1 || replayed != (i > 0) || err != nil {
				t.Errorf("call %d: run %d, replayed %t, %v, want the response of run 1", i, run, replayed, err)
			}
		}
		if run, _, err := r.call(t, "k", payment(5), "user", "bob"); run != 2 || err != nil {
			t.Errorf("another user with the same key: run %d, %v, want a run of its own", run, err)
		}
		check.Equal(t, r.effects(t), 2, "effects")
	})
}

// TestRefusals are calls that run no handler. The error of the scope function is the client's, with
// its details, and a caller without a name has no records of its own.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, setUp{})
	if _, _, err := r.call(t, "k", payment(5)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		key    string
		in     message
		pairs  []string
		code   codes.Code
		reason string
	}{
		"no key":        {"", payment(5), nil, codes.InvalidArgument, "KEY_INVALID"},
		"two keys":      {"a", payment(5), []string{semelgrpc.MetadataKey, "b"}, codes.InvalidArgument, "KEY_INVALID"},
		"key too long":  {strings.Repeat("k", 300), payment(5), nil, codes.InvalidArgument, "KEY_INVALID"},
		"other request": {"k", payment(6), nil, codes.InvalidArgument, "KEY_REUSED"},
		"scope refused": {"k", payment(5), []string{"user", "stranger"}, codes.Unauthenticated, "NO_USER"},
		"empty scope":   {"k", payment(5), []string{"user", ""}, codes.Unauthenticated, "UNAUTHENTICATED"},
	} {
		if _, _, err := r.call(t, test.key, test.in, test.pairs...); status.Code(err) != test.code || reasonOf(err) != test.reason {
			t.Errorf("%s: %v (%s), want %v (%s)", name, err, reasonOf(err), test.code, test.reason)
		}
	}
	check.Equal(t, r.runs.Load(), 1, "the handler ran")
}

// withReason is a status with details.
func withReason(code codes.Code, text, reason string) *status.Status {
	s, err := status.New(code, text).WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "semel.test"})
	if err != nil {
		panic(err)
	}
	return s
}

func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// TestStatusesOfHandlers calls twice with one key, where each run of the handler returns a status.
func TestStatusesOfHandlers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code         codes.Code
		inTx         bool
		runs         int64
		again        codes.Code
		replayed     bool
		againsReason string
	}{
		{codes.NotFound, false, 1, codes.NotFound, true, "SOLD_OUT"},
		{codes.NotFound, true, 1, codes.NotFound, true, "SOLD_OUT"},
		{codes.PermissionDenied, false, 2, codes.PermissionDenied, false, "SOLD_OUT"},
		{codes.PermissionDenied, true, 2, codes.PermissionDenied, false, "SOLD_OUT"},
		{codes.Internal, false, 1, codes.FailedPrecondition, false, "IN_DOUBT"},
		{codes.Internal, true, 2, codes.Internal, false, "SOLD_OUT"},
	} {
		t.Run(fmt.Sprintf("%v/inTx=%t", test.code, test.inTx), func(t *testing.T) {
			t.Parallel()
			var r *rig
			r = newRig(t, setUp{inTx: test.inTx, handler: func(ctx context.Context, run int64, in message) (any, error) {
				if _, err := r.effect(ctx, run, in); err != nil {
					return nil, err
				}
				return nil, withReason(test.code, "no", "SOLD_OUT").Err()
			}})
			_, _, first := r.call(t, "k", payment(5))
			_, replayed, again := r.call(t, "k", payment(5))
			if status.Code(again) != test.again || reasonOf(again) != test.againsReason || replayed != test.replayed {
				t.Errorf("again: %v (%s), replayed %t, want %v (%s), %t", again, reasonOf(again), replayed, test.again, test.againsReason, test.replayed)
			}
			if test.replayed && !proto.Equal(status.Convert(first).Proto(), status.Convert(again).Proto()) {
				t.Errorf("first %v, then %v, want the same status with its details", first, again)
			}
			check.Equal(t, r.runs.Load(), test.runs, "runs")
			if n := r.effects(t); test.inTx && n != 0 {
				t.Errorf("%d effects of rolled back transactions", n)
			}
		})
	}
}

// TestHandlersCallInTx: the response of the transaction is the answer, whatever the handler returns.
func TestHandlersCallInTx(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after error // what the handler returns after InTx
		in    func(run int64) (any, error)
		code  codes.Code
		rows  int
	}{
		"committed":               {nil, func(run int64) (any, error) { return answer(run), nil }, codes.OK, 1},
		"committed, then failed":  {errors.New("later"), func(run int64) (any, error) { return answer(run), nil }, codes.OK, 1},
		"rolled back":             {status.Error(codes.Internal, "no"), func(int64) (any, error) { return nil, errors.New("no") }, codes.Internal, 0},
		"value without a message": {nil, func(int64) (any, error) { return "text", nil }, codes.Internal, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *rig
			r = newRig(t, setUp{
				operation: semel.OperationOptions[semelgrpc.Request[message]]{Policy: semel.Atomic()},
				handler: func(ctx context.Context, run int64, _ message) (any, error) {
					v, err := semel.InTx(ctx, r.engine, func(ctx context.Context, tx *sql.Tx) (any, error) {
						if _, err := tx.ExecContext(ctx, `insert into effects values (?)`, run); err != nil {
							return nil, err
						}
						return test.in(run)
					})
					if test.after != nil {
						return nil, test.after
					}
					return v, err
				},
			})
			_, _, err := r.call(t, "k", payment(5))
			if status.Code(err) != test.code {
				t.Errorf("%v, want %v", err, test.code)
			}
			check.Equal(t, r.effects(t), test.rows, "effects")
			if test.code != codes.OK {
				return
			}
			if run, replayed, err := r.call(t, "k", payment(5)); run != 1 || !replayed || err != nil {
				t.Errorf("again: run %d, replayed %t, %v, want the response of run 1", run, replayed, err)
			}
		})
	}
}

func TestKeyInTheRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, setUp{keyField: "request_id"})
	in := payment(5)
	in.Set(in.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfString("k"))
	for i := range 2 {
		if run, replayed, err := r.call(t, "", in); run != 1 || replayed != (i > 0) || err != nil {
			t.Errorf("call %d: run %d, replayed %t, %v", i, run, replayed, err)
		}
	}
	if _, _, err := r.call(t, "in-metadata", payment(5)); reasonOf(err) != "KEY_INVALID" {
		t.Errorf("without the field: %v, want KEY_INVALID", err)
	}
}

// TestPanics: the effect of a handler that panics is unknown, and the panic continues.
func TestPanics(t *testing.T) {
	t.Parallel()
	recovering := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (v any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Error(codes.Internal, fmt.Sprint(p))
			}
		}()
		return next(ctx, req)
	}
	r := newRig(t, setUp{outer: recovering, handler: func(context.Context, int64, message) (any, error) { panic("boom") }})
	if _, _, err := r.call(t, "k", payment(5)); status.Convert(err).Message() != "boom" {
		t.Errorf("%v, want the panic", err)
	}
	if _, _, err := r.call(t, "k", payment(5)); reasonOf(err) != "IN_DOUBT" {
		t.Errorf("again: %v, want IN_DOUBT", err)
	}
}

func TestServerOptionsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t, setUp{})
	ok := semelgrpc.Do(r.engine, semel.Define("x", semel.OperationOptions[semelgrpc.Request[message]]{}))
	wrong := semelgrpc.DoTx(r.engine, semel.Define("a name", semel.OperationOptions[semelgrpc.Request[message]]{}))
	for field, o := range map[string]semelgrpc.ServerOptions{
		"Methods":                           {ScopeFunc: scopeOf},
		"Name":                              {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{method: wrong}},
		"ScopeFunc":                         {Methods: map[string]semelgrpc.Method{method: ok}},
		"Methods[" + method + "]":           {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{method: {}}},
		"Methods[semel.test.Shop]":          {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{"semel.test.Shop": ok}},
		"Methods[/other.Shop/Create]":       {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{"/other.Shop/Create": ok}},
		"Methods[/semel.test.Shop/Missing]": {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{"/semel.test.Shop/Missing": ok}},
		"Methods[/semel.test.Shop/Watch]":   {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{"/semel.test.Shop/Watch": ok}},
		"KeyField":                          {ScopeFunc: scopeOf, Methods: map[string]semelgrpc.Method{method: ok}, KeyField: "cents"},
	} {
		_, err := semelgrpc.UnaryServerInterceptor(o)
		var invalid *semel.FieldError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v, want a FieldError that names it", field, err)
		}
	}
}
