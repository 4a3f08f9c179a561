package failures_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelgrpc"
)

const (
	grpcService = "semel.failures.Calls"
	grpcMethod  = "/" + grpcService + "/Run"
)

// registerGRPC registers the service, which has no generated code.
var registerGRPC = sync.OnceValue(func() error {
	text := (&wrapperspb.StringValue{}).ProtoReflect().Descriptor()
	name := "." + string(text.FullName())
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("semel/failures.proto"), Package: proto.String("semel.failures"), Syntax: proto.String("proto3"),
		Dependency: []string{text.ParentFile().Path()},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Calls"), Method: []*descriptorpb.MethodDescriptorProto{{Name: proto.String("Run"), InputType: &name, OutputType: &name}},
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		return err
	}
	return protoregistry.GlobalFiles.RegisterFile(file)
})

// grpcHandler is a handler of a gRPC method, within its transaction. Its error rolls back.
type grpcHandler func(ctx context.Context, effect func() error) (string, error)

// grpcOperation are options for the mode.
func (w *fixture[Tx]) grpcOperation(by handlerMode) semel.OperationOptions[semelgrpc.Request[*wrapperspb.StringValue]] {
	of := w.operation(by)
	return semel.OperationOptions[semelgrpc.Request[*wrapperspb.StringValue]]{Policy: of.Policy, Lease: of.Lease}
}

// inMode runs s in the transaction of its mode.
func (w *fixture[Tx]) inMode(e semel.Runner, by handlerMode, s grpcHandler) grpc.UnaryHandler {
	reply := func(ctx context.Context, tx Tx) (any, error) {
		v, err := s(ctx, func() error { return w.effect(context.WithoutCancel(ctx), tx, grpcKey(ctx)) })
		return wrapperspb.String(v), err
	}
	return func(ctx context.Context, _ any) (any, error) {
		var none Tx
		switch by {
		case inline:
			tx, _ := semel.TxOf(ctx, e.(*semel.Engine[Tx]))
			return reply(ctx, tx)
		case leased:
			return semel.InTx(ctx, e.(*semel.Engine[Tx]), reply)
		case outside:
		}
		return reply(ctx, none)
	}
}

// serveGRPC serves a handler over a real connection, and returns a client's connection.
func (w *fixture[Tx]) serveGRPC(t *testing.T, e semel.Runner, by handlerMode,
	o semel.OperationOptions[semelgrpc.Request[*wrapperspb.StringValue]], handler grpc.UnaryHandler, client ...grpc.UnaryClientInterceptor,
) *grpc.ClientConn {
	t.Helper()
	check.Require(t, registerGRPC(), "register the service")
	op := semel.Define(w.op("grpc"), o)
	protect := semelgrpc.Do(e, op)
	if by == inline {
		protect = semelgrpc.DoTx(e.(*semel.Engine[Tx]), op)
	}
	once, err := semelgrpc.UnaryServerInterceptor(semelgrpc.ServerOptions{
		Methods: map[string]semelgrpc.Method{grpcMethod: protect},
		ScopeFunc: func(ctx context.Context) (semel.Scope, error) {
			return semel.ScopeOf(metadata.ValueFromIncomingContext(ctx, "user")...), nil
		},
	})
	check.Require(t, err, "protect")
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(once))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: grpcService, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Run", Handler: func(_ any, ctx context.Context, decode func(any) error, chain grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			return chain(ctx, in, &grpc.UnaryServerInfo{FullMethod: grpcMethod}, handler)
		},
	}}}, nil)
	listener := check.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn := check.Must(grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(client...)))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// serveMode serves s in its mode.
func (w *fixture[Tx]) serveMode(t *testing.T, by handlerMode, s grpcHandler, client ...grpc.UnaryClientInterceptor) *grpc.ClientConn {
	t.Helper()
	return w.serveGRPC(t, w.runner, by, w.grpcOperation(by), w.inMode(w.runner, by, s), client...)
}

// grpcRetries returns a client's interceptor that retries calls.
func grpcRetries(t *testing.T) grpc.UnaryClientInterceptor {
	t.Helper()
	return check.Must(semelgrpc.UnaryClientInterceptor(semelgrpc.ClientOptions{Methods: []string{grpcMethod}}))(t)
}

func grpcKey(ctx context.Context) string {
	get := func(name string) string { return append(metadata.ValueFromIncomingContext(ctx, name), "")[0] }
	return get("user") + "/" + get(semelgrpc.MetadataKey)
}

// reply is what a client of gRPC gets.
type reply struct {
	value    string
	err      error
	replayed bool
}

func callGRPC(ctx context.Context, conn *grpc.ClientConn, key string) reply {
	ctx = metadata.AppendToOutgoingContext(ctx, "user", "ann", semelgrpc.MetadataKey, key)
	var header, trailer metadata.MD
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, grpcMethod, wrapperspb.String("in"), out, grpc.Header(&header), grpc.Trailer(&trailer))
	// The status of a stored refusal may come without a header of its own.
	return reply{out.GetValue(), err, len(metadata.Join(header, trailer).Get(semelgrpc.MetadataReplayed)) > 0}
}

// reason returns the reason of a status of semelgrpc.
func (r reply) reason() string {
	for _, detail := range status.Convert(r.err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == semelgrpc.Domain {
			return info.GetReason()
		}
	}
	return ""
}

// wantReplay requires that r is a replay of first.
func (r reply) wantReplay(t *testing.T, first reply) {
	t.Helper()
	if r.value != first.value || !proto.Equal(status.Convert(r.err).Proto(), status.Convert(first.err).Proto()) || !r.replayed || first.replayed {
		t.Errorf("the repeat got %.60q, %v, replayed %v, want %.60q, %v again (replayed %v)",
			r.value, r.err, r.replayed, first.value, first.err, first.replayed)
	}
}
