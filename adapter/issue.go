package adapter

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// IssueOptions describe what [Issue] stores. TTL, which is required, is how long the
// call may start, from now and by the store's clock. Payload is for the function of the
// call, see [IssuedPayload]. MaxOpen is the largest number of issued calls of one scope
// that may still start, at most 100; zero: no limit. All calls of an operation and a
// scope must be issued with the same limit.
type IssueOptions = engine.IssueOptions

// Issue writes a Pending record for c, which no worker runs. The call that
// [semel.Call].Issued returns for it then runs at most once. The key must be one that
// was never used, such as the digest of a random token. The record is kept for TTL and
// the operation's retention. It is for package onetime.
//
// After [semel.ErrUnavailable] the record may exist. Other errors are a
// *semel.FieldError and, with MaxOpen, onetime.ErrTooMany.
func Issue(ctx context.Context, e semel.Runner, c semel.Call, o IssueOptions) error {
	return engine.Issue(ctx, e, c, o)
}

// IssuedPayload returns the payload of the issued call that runs in ctx, and whether
// the call was issued.
func IssuedPayload(ctx context.Context) ([]byte, bool) { return engine.IssuedPayload(ctx) }
