package semelotel_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

var pay = semel.Define("pay", semel.OperationOptions[semelgrpc.Request[*grpc_health_v1.HealthCheckRequest]]{})

// payments is a service whose only method enqueues a task. It has the interface of a service that
// is generated already.
type payments struct {
	grpc_health_v1.UnimplementedHealthServer

	*rig
}

func (p *payments) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, p.enqueue(ctx)
}

// receives is the interceptor of an instrumented server.
func (r *rig) receives(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	carrier := propagation.MapCarrier{}
	if parent := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(parent) == 1 {
		carrier["traceparent"] = parent[0]
	}
	ctx, span := r.tracers.Tracer("test").Start(r.telemetry.Extract(ctx, carrier), "receive", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	return next(ctx, req)
}

// sends is the interceptor of an instrumented client. It loses the first reply.
func (r *rig) sends(lost *bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, span := r.tracers.Tracer("test").Start(ctx, "send", trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
		for name, value := range r.telemetry.Inject(ctx) {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
		if err := invoke(ctx, method, req, reply, conn, opts...); err != nil || *lost {
			return err
		}
		*lost = true
		return status.Error(codes.Unavailable, "the reply is lost")
	}
}

// TestTraceOverGRPC: a request, the call of another service that its operation makes over gRPC,
// the operation of that service and its task are one trace. The client sends the call a second
// time, because the first reply is lost. The second try is replayed, and adds no run.
func TestTraceOverGRPC(t *testing.T) {
	t.Parallel()
	for name, protect := range map[string]func(r *rig) semelgrpc.Method{
		"Do":   func(r *rig) semelgrpc.Method { return semelgrpc.Do(r, pay) },
		"DoTx": func(r *rig) semelgrpc.Method { return semelgrpc.DoTx(r.Engine, pay) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, receiver := newRig(t, semel.Options{}), newRig(t, semel.Options{Operations: []semel.Declared{mail}})
			conn := receiver.serve(t, protect(receiver), r)

			ctx, request := r.tracers.Tracer("test").Start(t.Context(), "request")
			_, _, err := semel.Do(ctx, r, charge.Call(shop, "1", "a"), func(ctx context.Context) (string, error) {
				_, err := grpc_health_v1.NewHealthClient(conn).Check(semelgrpc.WithChildKey(ctx, "pay"), &grpc_health_v1.HealthCheckRequest{})
				return "a", err
			})
			check.Require(t, err)
			request.End()
			mailSpan := receiver.mailed(t)

			chargeSpan, paySpan := r.ended(t, "run charge"), receiver.ended(t, "run pay")
			sent, received := r.named("send"), receiver.named("receive")
			if len(sent) != 2 || len(received) != 2 {
				t.Fatalf("%d calls were sent and %d received, want 2", len(sent), len(received))
			}
			wantLinks(t, request.SpanContext(), map[string]link{
				"the parent of the operation":         {chargeSpan.Parent(), request.SpanContext()},
				"the parent of the first try":         {sent[0].Parent(), chargeSpan.SpanContext()},
				"the parent of the second try":        {sent[1].Parent(), chargeSpan.SpanContext()},
				"the parent of the first handling":    {received[0].Parent(), sent[0].SpanContext()},
				"the parent of the second handling":   {received[1].Parent(), sent[1].SpanContext()},
				"the parent of the service's own run": {paySpan.Parent(), received[0].SpanContext()},
				"the parent of the task":              {mailSpan.Parent(), paySpan.SpanContext()},
			})
			for i, s := range received {
				replayed := slices.ContainsFunc(s.Events(), func(e sdktrace.Event) bool { return e.Name == "semel.replayed" })
				check.Equal(t, replayed, i == 1, "handling %d says that it was replayed", i+1)
			}
		})
	}
}

// serve runs the service behind a method, and returns a connection of the client's to it.
func (r *rig) serve(t *testing.T, method semelgrpc.Method, client *rig) *grpc.ClientConn {
	t.Helper()
	const name = grpc_health_v1.Health_Check_FullMethodName
	protect := check.Must(semelgrpc.UnaryServerInterceptor(semelgrpc.ServerOptions{
		Methods: map[string]semelgrpc.Method{name: method}, ScopeFunc: func(context.Context) (semel.Scope, error) { return shop, nil },
	}))(t)
	retry := check.Must(semelgrpc.UnaryClientInterceptor(semelgrpc.ClientOptions{Methods: []string{name}, MinBackoff: 1}))(t)
	server, listener := grpc.NewServer(grpc.ChainUnaryInterceptor(r.receives, protect)), bufconn.Listen(1<<20)
	grpc_health_v1.RegisterHealthServer(server, &payments{rig: r})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn := check.Must(grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithChainUnaryInterceptor(retry, client.sends(new(bool)))))(t)
	t.Cleanup(func() {
		check.NoError(t, conn.Close())
		server.Stop()
		check.NoError(t, <-ended)
	})
	return conn
}
