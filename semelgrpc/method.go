package semelgrpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// Method says how the calls of one method run. [Do] and [DoTx] make it.
type Method struct {
	run   func(ctx context.Context, c *call) (response any, replayed bool, err error)
	check func() error // of the operation
}

// call is one call of a protected method.
type call struct {
	method   string
	keyField protoreflect.Name
	scope    semel.Scope
	key      string
	request  any
	output   protoreflect.MessageType
	next     grpc.UnaryHandler
}

// Do protects a method whose effect is anywhere. The key is claimed before the handler runs, and the
// operation's policy decides what happens after a crash. A handler of an operation with policy
// semel.Atomic calls semel.InTx with a function that returns the response; the response commits with
// the transaction.
func Do[M proto.Message](e semel.Runner, op *semel.Operation[Request[M]]) Method {
	check := func() error { return adapter.CheckOperation(e, op) }
	return Method{check: check, run: func(ctx context.Context, c *call) (any, bool, error) {
		in, err := requestOf[M](c)
		if err != nil {
			return nil, false, err
		}
		var raw semel.Raw
		attempt, outcome, err := adapter.Begin(waiting(ctx), e, op.Call(c.scope, c.key, in).Bind([]byte(c.method)))
		if attempt != nil {
			outcome, raw, err = c.attempt(attempt) //nolint:contextcheck // an attempt has its own context
		}
		if err != nil {
			return nil, semel.Replayed(err), err
		}
		if outcome != nil {
			err = outcome.Decode(&raw)
		}
		replayed := outcome != nil && outcome.Replayed
		if err != nil {
			return nil, replayed, err
		}
		response, err := decodeStored(raw, c.output)
		return response, replayed, err
	}}
}

// DoTx protects a method whose effect is in the database of the records. The handler runs in a
// transaction, which it gets by semel.TxOf. The response commits with the transaction, and is sent
// after the COMMIT. If the database aborts the transaction because of a conflict, the handler runs again.
func DoTx[M proto.Message, Tx any](e *semel.Engine[Tx], op *semel.Operation[Request[M]]) Method {
	check := func() error { return adapter.CheckOperation(e, op) }
	return Method{check: check, run: func(ctx context.Context, c *call) (any, bool, error) {
		in, err := requestOf[M](c)
		if err != nil {
			return nil, false, err
		}
		raw, replayed, err := semel.DoTx(waiting(ctx), e, op.Call(c.scope, c.key, in).Bind([]byte(c.method)),
			func(ctx context.Context, _ Tx) (semel.Raw, error) {
				response, err := c.next(ctx, proto.Clone(in.Message))
				if err != nil {
					return nil, meaningInTx(ownError(err))
				}
				return encodeResponse(response)
			})
		if err != nil {
			return nil, semel.Replayed(err), err
		}
		response, err := decodeStored(raw, c.output)
		return response, replayed, err
	}}
}

// waiting returns the context of a call that stops waiting for others when its client gives up.
func waiting(ctx context.Context) context.Context {
	return adapter.WithWaitContext(context.WithoutCancel(ctx), ctx)
}

func requestOf[M proto.Message](c *call) (Request[M], error) {
	m, ok := c.request.(M)
	if !ok {
		return Request[M]{}, fmt.Errorf("semelgrpc: a request of %s is a %T, and the operation takes another message", c.method, c.request)
	}
	return Request[M]{Message: m, keyField: c.keyField}, nil
}

// class is what the status of a handler says about its operation.
type class uint8

const (
	classError     class = iota // the effect is unknown, unless a rollback proves the opposite
	classRefused                // the answer of the operation
	classTemporary              // nothing happened, and the key may be retried
)

func classOf(code codes.Code) class {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return classRefused
	case codes.Unauthenticated, codes.PermissionDenied, codes.ResourceExhausted, codes.Aborted:
		return classTemporary
	case codes.OK, codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
	}
	return classError
}

// meaningInTx returns the error of a handler as the engine understands it. The rollback proves that
// nothing happened.
func meaningInTx(err error) error {
	if s, ok := handlerStatus(err); ok && classOf(s.Code()) == classRefused {
		return semel.Final(failureOf(s))
	}
	return err
}

// ownError hides that err is a status of another server that protects its methods with this package:
// a call of that server that is in progress, or was refused, says nothing about this operation.
func ownError(err error) error {
	var downstream *CallError
	if errors.As(err, &downstream) {
		return errors.New("semelgrpc: a call of another server: " + err.Error()) // not wrapped, on purpose
	}
	return err
}

// attempt runs the handler as one attempt. Without an outcome and an error, raw is the response or
// the status of the handler in the stored form, also if it is larger than the store keeps.
func (c *call) attempt(a *semel.Attempt) (out *adapter.Outcome, raw semel.Raw, err error) {
	defer a.Abandon() // for a panic
	r := &run{}
	a.AdaptWith(r)
	response, err := c.next(a.Context(), c.request)
	err = ownError(err)
	r.failed = err != nil
	switch s, ok := handlerStatus(err); {
	case r.committed: // InTx has stored the outcome
		out, err = a.EndQuiet(nil, nil)
		return out, r.raw, err
	case err == nil && r.undone:
		err = errRolledBack
	case err == nil:
		raw, err = encodeResponse(response)
	case ok && classOf(s.Code()) == classRefused && r.undone:
		err = semel.Final(failureOf(s))
	case ok && classOf(s.Code()) == classRefused:
		raw, err = encodeStatus(s)
	case ok && classOf(s.Code()) == classTemporary:
		err = semel.NotCommitted(err)
	}
	out, err = a.EndQuiet(raw, err)
	return out, raw, err
}

// errRolledBack is context.Canceled too, so that it is never stored.
var errRolledBack = fmt.Errorf("semelgrpc: the handler reports success after its transaction was rolled back: %w", context.Canceled)

var errTwice = errors.New("semelgrpc: semel.InTx has stored the response of this call already")

// run is the adapter of one attempt.
type run struct {
	committed bool      // InTx has stored the response
	undone    bool      // InTx has rolled back, and has not committed since
	failed    bool      // the handler returned an error
	raw       semel.Raw // what InTx has stored
}

// Encode implements adapter.Adapter.
func (r *run) Encode(v any) (any, error) {
	if r.committed {
		return nil, errTwice
	}
	raw, err := encodeResponse(v)
	if err != nil {
		return nil, err
	}
	r.committed, r.undone, r.raw = true, false, raw
	return raw, nil
}

// Undone implements adapter.Adapter.
func (r *run) Undone() { r.committed, r.undone = false, true }

// Claims implements adapter.Adapter.
func (r *run) Claims() bool { return !r.failed }
