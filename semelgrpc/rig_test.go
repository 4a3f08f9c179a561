package semelgrpc_test

import (
	"context"
	"database/sql"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/semelgrpc"
	"github.com/semelgo/semel/store/sqlite"
)

// The service of the tests, which has no generated code.
var (
	requestType  = dynamicpb.NewMessageType(file.Messages().ByName("CreatePayment"))
	responseType = dynamicpb.NewMessageType(file.Messages().ByName("Payment"))
	file         = shopFile()
)

const method = "/semel.test.Shop/CreatePayment"

func shopFile() protoreflect.FileDescriptor {
	field := func(number int32, name string, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(number), Type: kind.Enum(), Label: label.Enum()}
	}
	const optional, repeated = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	const text, number = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT64
	entry := field(4, "tags", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, repeated)
	entry.TypeName = proto.String(".semel.test.CreatePayment.TagsEntry")
	fd, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("semel/test/shop.proto"), Package: proto.String("semel.test"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{
				Name: proto.String("CreatePayment"),
				Field: []*descriptorpb.FieldDescriptorProto{
					field(1, "request_id", text, optional), field(2, "cents", number, optional), field(3, "notes", text, repeated), entry,
				},
				NestedType: []*descriptorpb.DescriptorProto{{
					Name: proto.String("TagsEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
					Field: []*descriptorpb.FieldDescriptorProto{field(1, "key", text, optional), field(2, "value", text, optional)},
				}},
			},
			{Name: proto.String("Payment"), Field: []*descriptorpb.FieldDescriptorProto{field(1, "run", number, optional)}},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Shop"),
			Method: []*descriptorpb.MethodDescriptorProto{
				{Name: proto.String("CreatePayment"), InputType: proto.String(".semel.test.CreatePayment"), OutputType: proto.String(".semel.test.Payment")},
				{Name: proto.String("Watch"), InputType: proto.String(".semel.test.CreatePayment"), OutputType: proto.String(".semel.test.Payment"), ServerStreaming: proto.Bool(true)},
			},
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	if err := protoregistry.GlobalFiles.RegisterFile(fd); err != nil {
		panic(err)
	}
	if err := protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(fd.Messages().ByName("Payment"))); err != nil {
		panic(err)
	}
	return fd
}

type (
	message = *dynamicpb.Message
	handler = func(ctx context.Context, run int64, in message) (any, error)
)

// payment is a request of so many cents.
func payment(cents int64) message {
	m := dynamicpb.NewMessage(requestType.Descriptor())
	m.Set(m.Descriptor().Fields().ByName("cents"), protoreflect.ValueOfInt64(cents))
	return m
}

// answer is the response of a run.
func answer(run int64) message {
	m := dynamicpb.NewMessage(responseType.Descriptor())
	m.Set(m.Descriptor().Fields().ByName("run"), protoreflect.ValueOfInt64(run))
	return m
}

// rig is a server with one protected method, and a connection to it.
type rig struct {
	conn   *grpc.ClientConn
	db     *sql.DB
	engine *semel.Engine[*sql.Tx]
	runs   atomic.Int64
}

// setUp is what a test chooses.
type setUp struct {
	operation semel.OperationOptions[semelgrpc.Request[message]]
	inTx      bool // DoTx, and not Do
	keyField  string
	handler   handler                       // nil: returns the number of the run, after an effect in the transaction of DoTx
	outer     grpc.UnaryServerInterceptor   // nil: none
	client    []grpc.UnaryClientInterceptor // none: plain calls
}

func newRig(t *testing.T, u setUp) *rig {
	t.Helper()
	r := &rig{}
	var err error
	if r.db, err = sqlite.Open(filepath.Join(t.TempDir(), "test.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), r.db, sqlitemigrate.Options{}))
	check.Must(r.db.ExecContext(t.Context(), `create table effects (run integer)`))(t)
	if r.engine, err = semel.New(sqlite.New(r.db, sqlite.Options{}), semel.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.engine.Close(context.WithoutCancel(t.Context())) })
	op := semel.Define("pay", u.operation)
	protect := semelgrpc.Do(r.engine, op)
	if u.inTx {
		protect = semelgrpc.DoTx(r.engine, op)
	}
	if u.handler == nil {
		u.handler = r.effect
	}
	protected := check.Must(semelgrpc.UnaryServerInterceptor(semelgrpc.ServerOptions{
		Methods: map[string]semelgrpc.Method{method: protect}, KeyField: u.keyField, ScopeFunc: scopeOf,
	}))(t)
	if u.outer == nil {
		u.outer = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(ctx, req)
		}
	}
	r.serve(t, u, grpc.ChainUnaryInterceptor(u.outer, protected))
	return r
}

// scopeOf takes the user from the metadata, and refuses the user "stranger".
func scopeOf(ctx context.Context) (semel.Scope, error) {
	user := append(metadata.ValueFromIncomingContext(ctx, "user"), "ann")[0]
	if user == "stranger" {
		return semel.Scope{}, withReason(codes.Unauthenticated, "not authenticated", "NO_USER").Err()
	}
	return semel.ScopeOf(user), nil
}

func (r *rig) serve(t *testing.T, u setUp, option grpc.ServerOption) {
	t.Helper()
	server := newServer(option, func(ctx context.Context, in message) (any, error) { return u.handler(ctx, r.runs.Add(1), in) })
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	r.conn = dial(t, func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }, u.client...)
}

// newServer returns a server of the service.
func newServer(option grpc.ServerOption, handle func(ctx context.Context, in message) (any, error)) *grpc.Server {
	server := grpc.NewServer(option)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "semel.test.Shop", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "CreatePayment", Handler: func(_ any, ctx context.Context, decode func(any) error, chain grpc.UnaryServerInterceptor) (any, error) {
			in := dynamicpb.NewMessage(requestType.Descriptor())
			if err := decode(in); err != nil {
				return nil, err
			}
			return chain(ctx, in, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, req any) (any, error) {
				return handle(ctx, req.(message))
			})
		}}},
	}, nil)
	return server
}

func dial(t *testing.T, dialer func(ctx context.Context, address string) (net.Conn, error), client ...grpc.UnaryClientInterceptor) *grpc.ClientConn {
	t.Helper()
	conn := check.Must(grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer), grpc.WithChainUnaryInterceptor(client...)))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// effect is a handler that writes a row, in the transaction of DoTx or on its own.
func (r *rig) effect(ctx context.Context, run int64, _ message) (any, error) {
	var to interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	} = r.db
	if tx, ok := semel.TxOf(ctx, r.engine); ok {
		to = tx
	}
	_, err := to.ExecContext(ctx, `insert into effects values (?)`, run)
	return answer(run), err
}

// call sends a request with a key, and returns the number of the run that answered.
func (r *rig) call(t *testing.T, key string, in message, pairs ...string) (run int64, replayed bool, err error) {
	t.Helper()
	return callOn(t.Context(), r.conn, key, in, pairs...)
}

func callOn(ctx context.Context, conn *grpc.ClientConn, key string, in message, pairs ...string) (run int64, replayed bool, err error) {
	if key != "" {
		pairs = append(pairs, semelgrpc.MetadataKey, key)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, pairs...)
	out, header := dynamicpb.NewMessage(responseType.Descriptor()), metadata.MD{}
	err = conn.Invoke(ctx, method, in, out, grpc.Header(&header))
	return out.Get(out.Descriptor().Fields().ByName("run")).Int(), len(header.Get(semelgrpc.MetadataReplayed)) > 0, err
}

// effects counts the rows.
func (r *rig) effects(t *testing.T) (n int) {
	t.Helper()
	check.Require(t, r.db.QueryRowContext(t.Context(), `select count(*) from effects`).Scan(&n))
	return n
}
