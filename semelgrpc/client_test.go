package semelgrpc_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

func retrying(t *testing.T, o semelgrpc.ClientOptions) grpc.UnaryClientInterceptor {
	t.Helper()
	o.Methods = []string{method}
	if o.MinBackoff == 0 {
		o.MinBackoff = time.Millisecond
	}
	client := check.Must(semelgrpc.UnaryClientInterceptor(o))(t)
	return client
}

// TestLostReplies: the server's answer is lost after the effect, and the client's retry receives the
// stored response.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	for name, keyField := range map[string]string{"metadata": "", "field": "request_id"} {
		for _, inTx := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var lost atomic.Int32
				r := newRig(t, setUp{
					inTx: inTx, keyField: keyField, client: []grpc.UnaryClientInterceptor{retrying(t, semelgrpc.ClientOptions{KeyField: keyField})},
					outer: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
						v, err := next(ctx, req)
						if lost.Add(1) <= 2 {
							return nil, status.Error(codes.Unavailable, "the connection was lost")
						}
						return v, err
					},
				})
				run, replayed, err := r.call(t, "", payment(5))
				if run != 1 || !replayed || err != nil || lost.Load() != 3 {
					t.Errorf("run %d, replayed %t, %v after %d tries, want the response of run 1 in the third", run, replayed, err, lost.Load())
				}
				check.Equal(t, r.effects(t), 1, "effects")
				if run, _, err := r.call(t, "", payment(5)); run != 2 || err != nil {
					t.Errorf("another call: run %d, %v, want a key and a run of its own", run, err)
				}
			})
		}
	}
}

// TestClientWaits for another call of the same key, and is told for how long.
func TestClientWaits(t *testing.T) {
	t.Parallel()
	begun, open := make(chan struct{}), make(chan struct{})
	refused := make(chan struct{}, 100)
	r := newRig(t, setUp{
		client: []grpc.UnaryClientInterceptor{retrying(t, semelgrpc.ClientOptions{})},
		outer: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			v, err := next(ctx, req)
			if status.Code(err) == codes.Aborted {
				if reasonOf(err) != "IN_PROGRESS" || retryDelay(status.Convert(err)) <= 0 {
					t.Errorf("%v (%s), want IN_PROGRESS with a delay", err, reasonOf(err))
				}
				refused <- struct{}{}
			}
			return v, err
		},
		handler: func(_ context.Context, run int64, _ message) (any, error) {
			close(begun)
			<-open
			return answer(run), nil
		},
	})
	results := make(chan int64, 2)
	call := func() {
		run, _, err := r.call(t, "k", payment(5))
		check.NoError(t, err)
		results <- run
	}
	await := func(event <-chan struct{}) { // ends the test if a call returns before the handler may
		t.Helper()
		select {
		case <-event:
		case run := <-results:
			close(open)
			t.Fatalf("a call has the response of run %d while the handler was to be held", run)
		}
	}
	go call()
	await(begun)
	go call()
	await(refused)
	close(open)
	if one, two := <-results, <-results; one != 1 || two != 1 {
		t.Errorf("runs %d and %d, want the response of run 1 twice", one, two)
	}
}

// TestClientErrors: final statuses are not retried, and errors.Is finds the error of package semel.
func TestClientErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, setUp{
		client: []grpc.UnaryClientInterceptor{retrying(t, semelgrpc.ClientOptions{})},
		handler: func(_ context.Context, run int64, in message) (any, error) {
			if in.Get(in.Descriptor().Fields().ByName("cents")).Int() > 5 {
				return nil, status.Error(codes.Internal, "broken")
			}
			return answer(run), nil
		},
	})
	if _, _, err := r.call(t, "k", payment(5)); err != nil {
		t.Fatal(err)
	}
	_, _, err := r.call(t, "k", payment(4))
	var call *semelgrpc.CallError
	if !errors.Is(err, semel.ErrMismatch) || !errors.As(err, &call) || call.Reason != "KEY_REUSED" || status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v, want ErrMismatch", err)
	}
	_, _, _ = r.call(t, "doubt", payment(6))
	if _, _, err := r.call(t, "doubt", payment(6)); !errors.Is(err, semel.ErrInDoubt) || status.Code(err) != codes.FailedPrecondition {
		t.Errorf("%v, want ErrInDoubt", err)
	}
	check.Equal(t, r.runs.Load(), 2, "runs")
}

// TestChildKeys: each attempt of an operation sends the same key to another server. Without a name the
// call is refused before it is sent.
func TestChildKeys(t *testing.T) {
	t.Parallel()
	var keys []string
	payments := newRig(t, setUp{
		client: []grpc.UnaryClientInterceptor{retrying(t, semelgrpc.ClientOptions{})},
		outer: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			keys = append(keys, metadata.ValueFromIncomingContext(ctx, semelgrpc.MetadataKey)...)
			return next(ctx, req)
		},
	})
	op := semel.Define("order", semel.OperationOptions[string]{Policy: semel.AtLeastOnce()})
	order := func(name string, fail error) error {
		_, _, err := semel.Do(t.Context(), payments.engine, op.Call(semel.ScopeOf("ann"), "order "+name, "x"), func(ctx context.Context) (int, error) {
			if name != "" {
				ctx = semelgrpc.WithChildKey(ctx, name)
			}
			if err := payments.conn.Invoke(ctx, method, payment(5), answer(0)); err != nil {
				return 0, err
			}
			return 0, fail
		})
		return err
	}
	if err := order("", nil); err == nil || !strings.Contains(err.Error(), "WithChildKey") || len(keys) != 0 {
		t.Errorf("without a name: %v with keys %q, want an error that names WithChildKey before anything is sent", err, keys)
	}
	_ = order("charge", errors.New("crashed after the charge"))
	check.NoError(t, order("charge", nil))
	if len(keys) != 2 || keys[0] != keys[1] || payments.runs.Load() != 1 {
		t.Errorf("keys %q, %d runs, want one key twice and one run", keys, payments.runs.Load())
	}
}

// TestDownstreamStatus: that a call of another server is in progress says nothing about the own
// operation, so that its effect is unknown and it is not run again.
func TestDownstreamStatus(t *testing.T) {
	t.Parallel()
	begun, open := make(chan struct{}), make(chan struct{})
	other := newRig(t, setUp{handler: func(_ context.Context, run int64, _ message) (any, error) {
		close(begun)
		<-open
		return answer(run), nil
	}})
	held := make(chan error, 1)
	go func() {
		_, _, err := callOn(t.Context(), other.conn, "k", payment(5))
		held <- err
	}()
	select {
	case <-begun:
	case err := <-held:
		t.Fatalf("the other server answered the held call with %v", err)
	}
	retry := retrying(t, semelgrpc.ClientOptions{Budget: 50 * time.Millisecond})
	invoke := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, opts ...grpc.CallOption) error {
		return conn.Invoke(ctx, method, req, reply, opts...)
	}
	r := newRig(t, setUp{handler: func(ctx context.Context, _ int64, _ message) (any, error) {
		ctx = metadata.AppendToOutgoingContext(ctx, semelgrpc.MetadataKey, "k")
		return nil, retry(ctx, method, payment(5), answer(0), other.conn, invoke)
	}})
	if _, _, err := r.call(t, "own", payment(5)); reasonOf(err) != "OUTCOME_UNKNOWN" {
		t.Errorf("%v (%s), want OUTCOME_UNKNOWN", err, reasonOf(err))
	}
	if _, _, err := r.call(t, "own", payment(5)); reasonOf(err) != "IN_DOUBT" {
		t.Errorf("again: %v (%s), want IN_DOUBT", err, reasonOf(err))
	}
	close(open)
	check.NoError(t, <-held)
}

func TestClientOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]semelgrpc.ClientOptions{
		"Methods": {}, "Budget": {Methods: []string{method}, Budget: -1}, "TryTimeout": {Methods: []string{method}, TryTimeout: -1},
	} {
		var invalid *semel.FieldError
		if _, err := semelgrpc.UnaryClientInterceptor(o); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v, want a FieldError that names it", field, err)
		}
	}
}

// TestBudget: the client gives up with the last status when its budget is used up. A delay that is
// longer is waited for, and does not make the client retry at once.
func TestBudget(t *testing.T) {
	t.Parallel()
	for delay, again := range map[int64]bool{0: true, 315_576_000_000: false} { // in seconds
		synctest.Test(t, func(t *testing.T) {
			s, err := status.New(codes.Unavailable, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: delay}})
			check.Require(t, err)
			tries, begun := 0, time.Now()
			err = retrying(t, semelgrpc.ClientOptions{Budget: time.Second})(t.Context(), method, payment(5), answer(0), nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					tries++
					return s.Err()
				})
			check.Equal(t, time.Since(begun), time.Second, "the client gave up after")
			if status.Code(err) != codes.Unavailable || (tries > 1) != again {
				t.Errorf("%v, after %d tries with a delay of %d s, want another try: %v", err, tries, delay, again)
			}
		})
	}
}
