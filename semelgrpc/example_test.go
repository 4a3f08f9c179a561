package semelgrpc_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelgrpc"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// A server protects a method: the operation takes its request message, here a generated one.
func ExampleUnaryServerInterceptor() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	createOrder := semel.Define("create_order", semel.OperationOptions[semelgrpc.Request[*wrapperspb.StringValue]]{})
	once, err := semelgrpc.UnaryServerInterceptor(semelgrpc.ServerOptions{
		Methods: map[string]semelgrpc.Method{"/semel.test.Shop/CreatePayment": semelgrpc.DoTx(engine, createOrder)},
		ScopeFunc: func(ctx context.Context) (semel.Scope, error) {
			return semel.ScopeOf(metadata.ValueFromIncomingContext(ctx, "user")...), nil
		},
	})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor( /* authentication, */ once))
	defer server.Stop()
	fmt.Println("ready")
	// Output: ready
}
