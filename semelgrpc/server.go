package semelgrpc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/semelgo/semel"
)

const (
	// MetadataKey is the metadata that carries the key, unless ServerOptions.KeyField is set.
	MetadataKey = "idempotency-key"
	// MetadataReplayed is "true" in the header of a response that was stored by an earlier call.
	MetadataReplayed = "idempotent-replayed"
)

// ServerOptions configure UnaryServerInterceptor.
type ServerOptions struct {
	// Methods are the protected methods by their full names, such as /shop.Orders/Create. Other
	// methods run as without the interceptor. Required.
	Methods map[string]Method
	// ScopeFunc returns the scope of a call's key: the authenticated principal or tenant. Its error is
	// returned to the client as it is; a scope without a name is UNAUTHENTICATED. Required.
	ScopeFunc func(ctx context.Context) (semel.Scope, error)
	// KeyField is the name of the string field of request messages that carries the key, request_id
	// by AIP-155. Empty: the key is in the metadata idempotency-key.
	KeyField string
	// ErrorFunc receives the errors of which the client learns nothing more than a status. It must be safe
	// for concurrent use. Nil: those with the statuses INTERNAL, UNKNOWN and UNAVAILABLE are logged by
	// slog.Default, with the method and the error, at level Error, and Warn for UNAVAILABLE.
	ErrorFunc func(ctx context.Context, method string, err error)
}

// UnaryServerInterceptor returns the interceptor. Chain it after the one that authenticates, so that
// calls that are refused use no key. Invalid options are a *semel.FieldError.
//
// The handler's context does not end when the client cancels its call or its deadline expires, because
// a running attempt must end in a known way; waiting for another call with the key does end. A panic of
// the handler continues.
func UnaryServerInterceptor(o ServerOptions) (grpc.UnaryServerInterceptor, error) {
	if len(o.Methods) == 0 {
		return nil, &semel.FieldError{Field: "Methods", Reason: "is empty"}
	}
	if o.ScopeFunc == nil {
		return nil, &semel.FieldError{Field: "ScopeFunc", Reason: "is nil"}
	}
	if o.ErrorFunc == nil {
		o.ErrorFunc = logError
	}
	outputs := make(map[string]protoreflect.MessageType)
	for name, m := range o.Methods {
		if m.run == nil {
			return nil, &semel.FieldError{Field: "Methods[" + name + "]", Reason: "is not made by Do or DoTx"}
		}
		if err := m.check(); err != nil {
			return nil, err
		}
		output, err := outputOf(name, protoreflect.Name(o.KeyField))
		if err != nil {
			return nil, err
		}
		outputs[name] = output
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		m, ok := o.Methods[info.FullMethod]
		if !ok {
			return next(ctx, req)
		}
		scope, err := o.ScopeFunc(ctx)
		if err != nil {
			return nil, err
		}
		if scope.Bytes() == "" { // ScopeFunc has not authenticated the caller
			return nil, semelStatus(reason{name: "UNAUTHENTICATED", code: codes.Unauthenticated, message: "the caller is not authenticated"}, 0).Err()
		}
		c := &call{
			method: info.FullMethod, keyField: protoreflect.Name(o.KeyField), scope: scope, request: req,
			output: outputs[info.FullMethod], next: next,
		}
		if c.key, err = keyOf(ctx, req, c.keyField); err != nil {
			return nil, StatusOf(err).Err()
		}
		response, replayed, err := m.run(ctx, c)
		if replayed {
			_ = grpc.SetHeader(ctx, metadata.Pairs(MetadataReplayed, "true")) // fails only after the handler sent its header
		}
		if err != nil {
			o.ErrorFunc(ctx, info.FullMethod, err)
			return nil, StatusOf(err).Err()
		}
		return response, nil
	}, nil
}

// logError logs an error whose text the client is not shown.
func logError(ctx context.Context, method string, err error) {
	code, level := StatusOf(err).Code(), slog.LevelError
	switch code { //nolint:exhaustive // the client understands the other codes
	case codes.Unavailable:
		level = slog.LevelWarn
	case codes.Internal, codes.Unknown:
	default:
		return
	}
	slog.Default().LogAttrs(ctx, level, "semelgrpc: call", slog.String("method", method), slog.String("status", code.String()), slog.String("error", err.Error()))
}

// outputOf returns the response type of a method, and checks its key field.
func outputOf(method string, keyField protoreflect.Name) (protoreflect.MessageType, error) {
	invalid := func(reason string) error { return &semel.FieldError{Field: "Methods[" + method + "]", Reason: reason} }
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok || !strings.HasPrefix(method, "/") {
		return nil, invalid("is not of the form /package.Service/Method")
	}
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	described, isService := found.(protoreflect.ServiceDescriptor)
	if err != nil || !isService {
		return nil, invalid("is of a service that the program does not know")
	}
	m := described.Methods().ByName(protoreflect.Name(name))
	if m == nil {
		return nil, invalid("does not exist")
	}
	if m.IsStreamingClient() || m.IsStreamingServer() {
		return nil, invalid("is a stream; only unary methods can be protected")
	}
	if f := m.Input().Fields().ByName(keyField); keyField != "" && (f == nil || f.Kind() != protoreflect.StringKind || f.IsList()) {
		return nil, &semel.FieldError{Field: "KeyField", Reason: fmt.Sprintf("is no string field of %s", m.Input().FullName())}
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	if err != nil {
		return nil, invalid("has a response type that the program does not know")
	}
	return output, nil
}

// keyOf returns the key of a request.
func keyOf(ctx context.Context, req any, field protoreflect.Name) (string, error) {
	missing := &semel.FieldError{Field: "Key", Reason: "is missing"}
	if field != "" {
		m, ok := req.(proto.Message)
		if !ok {
			return "", missing
		}
		key := m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName(field)).String()
		if key == "" {
			return "", missing
		}
		return key, nil
	}
	keys := metadata.ValueFromIncomingContext(ctx, MetadataKey)
	switch {
	case len(keys) == 0 || keys[0] == "":
		return "", missing
	case len(keys) > 1:
		return "", &semel.FieldError{Field: "Key", Reason: "is given more than once"}
	default:
		return keys[0], nil
	}
}
