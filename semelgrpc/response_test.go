package semelgrpc_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

// TestMetadataIsOfItsCall: metadata that a handler sets, in the header and in the trailer, is sent
// to its first client only.
func TestMetadataIsOfItsCall(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, u setUp) {
		u.handler = func(ctx context.Context, run int64, _ message) (any, error) {
			return answer(run), errors.Join(grpc.SetHeader(ctx, metadata.Pairs("session", "secret")), grpc.SetTrailer(ctx, metadata.Pairs("sum", "42")))
		}
		r := newRig(t, u)
		for i := range 2 {
			var header, trailer metadata.MD
			ctx := metadata.AppendToOutgoingContext(t.Context(), semelgrpc.MetadataKey, "k")
			check.NoError(t, r.conn.Invoke(ctx, method, payment(5), answer(0), grpc.Header(&header), grpc.Trailer(&trailer)))
			if first := i == 0; (len(header.Get("session")) == 1) != first || (len(trailer.Get("sum")) == 1) != first {
				t.Errorf("call %d: header %v, trailer %v, want the handler's for the first client only", i, header, trailer)
			}
		}
	})
}

// TestAnySizeOfResponseIsReplayed: one without a field, and one that takes many frames.
func TestAnySizeOfResponseIsReplayed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]byte{"empty": nil, "large": append([]byte{0xfa, 0x06, 0x80, 0x80, 0x20}, make([]byte, 1<<19)...)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, u setUp) {
				u.handler = func(context.Context, int64, message) (any, error) {
					m := dynamicpb.NewMessage(responseType.Descriptor())
					m.SetUnknown(want)
					return m, nil
				}
				r := newRig(t, u)
				for i := range 2 {
					out, header := dynamicpb.NewMessage(responseType.Descriptor()), metadata.MD{}
					ctx := metadata.AppendToOutgoingContext(t.Context(), semelgrpc.MetadataKey, "k")
					err := r.conn.Invoke(ctx, method, payment(5), out, grpc.Header(&header))
					replayed := len(header.Get(semelgrpc.MetadataReplayed)) > 0
					if !bytes.Equal(out.GetUnknown(), want) || replayed != (i > 0) || err != nil {
						t.Errorf("call %d: %d bytes, replayed %t, %v, want %d bytes", i, len(out.GetUnknown()), replayed, err, len(want))
					}
				}
			})
		})
	}
}

// TestOtherMethodsAreUntouched: a method that is not protected reaches its handler each time and
// uses no key.
func TestOtherMethodsAreUntouched(t *testing.T) {
	t.Parallel()
	r := newRig(t, setUp{})
	const other = "/semel.test.Shop/Watch"
	protected := check.Must(semelgrpc.UnaryServerInterceptor(semelgrpc.ServerOptions{
		Methods:   map[string]semelgrpc.Method{method: semelgrpc.Do(r.engine, semel.Define("x", semel.OperationOptions[semelgrpc.Request[message]]{}))},
		ScopeFunc: scopeOf,
	}))(t)
	runs := 0
	for range 2 {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(semelgrpc.MetadataKey, "k"))
		_, err := protected(ctx, payment(5), &grpc.UnaryServerInfo{FullMethod: other}, func(context.Context, any) (any, error) {
			runs++
			return answer(1), nil
		})
		check.NoError(t, err)
	}
	check.Equal(t, runs, 2, "runs")
}

// TestStreamsOfOneConnection: many concurrent calls with one key have one effect.
func TestStreamsOfOneConnection(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, u setUp) {
		u.client = []grpc.UnaryClientInterceptor{retrying(t, semelgrpc.ClientOptions{})}
		r := newRig(t, u)
		var firsts atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				run, replayed, err := r.call(t, "k", payment(5))
				if run != 1 || err != nil {
					t.Errorf("run %d, %v, want the response of run 1", run, err)
				}
				if !replayed {
					firsts.Add(1)
				}
			})
		}
		all.Wait()
		check.Equal(t, firsts.Load(), 1, "first responses")
		check.Equal(t, r.effects(t), 1, "effects")
	})
}
