package semelgrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/semelgo/semel"
)

// The first byte of a stored outcome.
const (
	storedResponse byte = 1 // followed by the response message
	storedStatus   byte = 2 // followed by a google.rpc.Status
)

var errNoMessage = errors.New("semelgrpc: the value of the function given to semel.InTx must be the response message")

// encodeResponse returns the stored form of a response.
func encodeResponse(response any) (semel.Raw, error) {
	m, ok := response.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{storedResponse}, m)
}

// encodeStatus returns the stored form of a status that is the operation's answer.
func encodeStatus(s *status.Status) (semel.Raw, error) {
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{storedStatus}, s.Proto())
}

// decodeStored returns the response or the status of a stored outcome.
func decodeStored(raw semel.Raw, of protoreflect.MessageType) (proto.Message, error) {
	switch {
	case len(raw) > 0 && raw[0] == storedResponse:
		m := of.New().Interface()
		if err := proto.Unmarshal(raw[1:], m); err != nil {
			return nil, fmt.Errorf("semelgrpc: the stored response is no %s: %w", of.Descriptor().FullName(), err)
		}
		return m, nil
	case len(raw) > 0 && raw[0] == storedStatus:
		var s spb.Status
		if err := proto.Unmarshal(raw[1:], &s); err != nil {
			return nil, fmt.Errorf("semelgrpc: the stored status cannot be read: %w", err)
		}
		return nil, status.ErrorProto(&s)
	default:
		return nil, fmt.Errorf("%w: it was stored by another package than semelgrpc", semel.ErrResultUnavailable)
	}
}

// refused is the Details of a failure that a handler's status made.
type refused struct {
	Status []byte `json:"status"` // a google.rpc.Status
}

// failureCode is the code of failures with such Details.
const failureCode = "grpc_status"

// failureOf returns the stored failure of a status.
func failureOf(s *status.Status) *semel.Failure {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(s.Proto()) // a storable status never fails
	details, _ := json.Marshal(refused{text})                               // bytes never fail
	return &semel.Failure{Code: failureCode, Message: s.Message(), Details: details}
}

// statusOfFailure returns the status of a stored failure.
func statusOfFailure(f *semel.Failure) *status.Status {
	var about refused
	var s spb.Status
	if f.Code == failureCode && json.Unmarshal(f.Details, &about) == nil && proto.Unmarshal(about.Status, &s) == nil && s.GetCode() != 0 {
		return status.FromProto(&s)
	}
	answer := status.New(codes.FailedPrecondition, f.Message)
	answer, _ = answer.WithDetails(&errdetails.ErrorInfo{Reason: strings.ToValidUTF8(f.Code, "\uFFFD"), Domain: Domain}) // fails for OK and invalid texts only
	return answer
}
