package semel

import (
	"context"

	"github.com/semelgo/semel/internal/engine"
)

// Attempt is a successful claim: the right to run the operation now. Its function
// finds it with [AttemptOf]. Context, Number, Token, Call and Record describe it, and
// ChildKey returns keys for downstream calls. The other methods are for adapters,
// which begin and end attempts: see package adapter.
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
