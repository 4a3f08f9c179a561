package semel

import (
	"context"

	"github.com/semelgo/semel/internal/engine"
)

// Attempt is a successful claim: the right to run the operation now. End it exactly
// once, or Abandon it.
type Attempt = engine.Attempt

// AttemptOf returns the attempt of ctx, inside [Do] and inside [DoTx] of a leased
// operation. It is the attempt of the innermost operation: inside an operation that
// is a single transaction there is none, even if a leased operation called it.
func AttemptOf(ctx context.Context) (*Attempt, bool) {
	return engine.AttemptOf(ctx)
}

// ChildKey is [Attempt.ChildKey] for the operation of ctx, leased or inline.
// Without an operation it is ErrInvalid, and never a random key, which would
// protect nothing.
func ChildKey(ctx context.Context, name string) (string, error) {
	return engine.ChildKey(ctx, name)
}
