package semelgrpc

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/semelgo/semel"
)

// ClientOptions configure UnaryClientInterceptor.
type ClientOptions struct {
	// Methods are the full names of the methods that get keys and retries. Others are called as without
	// the interceptor. Required.
	Methods []string
	// KeyField is the name of the string field of request messages that carries the key. A request whose
	// field is set keeps its key. Empty: the key is sent in the metadata idempotency-key, unless the
	// caller has set that.
	KeyField string
	// Budget is how long a call may take with all its tries and waits; the deadline of the context applies
	// too. Zero: 1 minute.
	Budget time.Duration
	// TryTimeout is how long one try may take. Zero: 10 seconds.
	TryTimeout time.Duration
	// MinBackoff and MaxBackoff are the upper bounds of the first wait and of the longest one; each wait is
	// random below its bound, and at least as long as the server asks for. Zero: 100 ms and 5 s.
	MinBackoff, MaxBackoff time.Duration
}

// UnaryClientInterceptor returns an interceptor that gives each call one key and sends it until it has a
// final answer: it retries UNAVAILABLE, DEADLINE_EXCEEDED of a try, and statuses with a RetryInfo, with
// the same key and the same request. When the budget is used up, the error is that of the last try; the
// call may then have taken place, and a later call with the same key finds out.
//
// Within an operation of package semel, name the call with [WithChildKey], so that each attempt of the
// operation makes the same call. Invalid options are a *semel.FieldError.
func UnaryClientInterceptor(o ClientOptions) (grpc.UnaryClientInterceptor, error) {
	if len(o.Methods) == 0 {
		return nil, &semel.FieldError{Field: "Methods", Reason: "is empty"}
	}
	for _, d := range []struct {
		name      string
		value     *time.Duration
		otherwise time.Duration
	}{
		{"Budget", &o.Budget, time.Minute},
		{"TryTimeout", &o.TryTimeout, 10 * time.Second},
		{"MinBackoff", &o.MinBackoff, 100 * time.Millisecond},
		{"MaxBackoff", &o.MaxBackoff, 5 * time.Second},
	} {
		if *d.value < 0 {
			return nil, &semel.FieldError{Field: d.name, Reason: "is negative"}
		}
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !slices.Contains(o.Methods, method) {
			return invoke(ctx, method, req, reply, conn, opts...)
		}
		ctx, cancel := context.WithTimeout(ctx, o.Budget)
		defer cancel()
		ctx, req, err := o.withKey(ctx, req)
		if err != nil {
			return err
		}
		for tries := 0; ; tries++ {
			try, stop := context.WithTimeout(ctx, o.TryTimeout)
			err := invoke(try, method, req, reply, conn, opts...)
			stop()
			wait, again := o.wait(ctx, err, tries)
			if !again || !sleep(ctx, wait) {
				return errorOf(err)
			}
		}
	}, nil
}

// wait returns how long to wait after the error of a try, and whether another try makes sense.
func (o *ClientOptions) wait(ctx context.Context, err error, tries int) (time.Duration, bool) {
	if err == nil || ctx.Err() != nil {
		return 0, false
	}
	s := status.Convert(err)
	asked, retriable := retryDelay(s)
	if !retriable && s.Code() != codes.Unavailable && s.Code() != codes.DeadlineExceeded {
		return 0, false
	}
	limit := min(o.MaxBackoff, o.MinBackoff<<min(tries, 16))
	return min(asked, math.MaxInt64/2) + rand.N(limit), true // the sum must not overflow
}

// sleep waits, and reports whether ctx lasts that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// withKey puts the key of a call into its metadata, or into a copy of its request.
func (o *ClientOptions) withKey(ctx context.Context, req any) (context.Context, any, error) {
	if o.KeyField == "" {
		if out, ok := metadata.FromOutgoingContext(ctx); ok && len(out.Get(MetadataKey)) > 0 {
			return ctx, req, nil
		}
		key, err := newKey(ctx)
		return metadata.AppendToOutgoingContext(ctx, MetadataKey, key), req, err
	}
	m, ok := req.(proto.Message)
	if !ok {
		return ctx, req, &semel.FieldError{Field: "KeyField", Reason: "needs requests that are protobuf messages"}
	}
	field := m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(o.KeyField))
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ctx, req, &semel.FieldError{Field: "KeyField", Reason: "is no string field of " + string(m.ProtoReflect().Descriptor().FullName())}
	}
	if m.ProtoReflect().Get(field).String() != "" {
		return ctx, req, nil
	}
	key, err := newKey(ctx)
	m = proto.Clone(m)
	m.ProtoReflect().Set(field, protoreflect.ValueOfString(key))
	return ctx, m, err
}

type childKeyName struct{}

// WithChildKey names the calls that are made with the returned context within an operation. Their key is
// derived from the operation's key and the name, so that every attempt of the operation sends the same
// key. Use one name for each call of the operation.
func WithChildKey(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, childKeyName{}, name)
}

// newKey returns the child key that the context names, or a random key outside of operations.
func newKey(ctx context.Context) (string, error) {
	if name, ok := ctx.Value(childKeyName{}).(string); ok {
		return semel.ChildKey(ctx, name)
	}
	if _, outside := semel.ChildKey(ctx, ""); outside == nil {
		return "", &semel.FieldError{Field: "Key", Reason: "must be named by WithChildKey inside an operation, because each attempt would send another key"}
	}
	key, err := uuid.NewV7()
	return key.String(), err
}
