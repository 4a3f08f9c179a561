package adapter

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// Attempt is a successful claim: the right to run the operation now.
type Attempt = engine.Attempt

// Begin claims the key of c for an adapter that cannot pass its work as a function.
// Exactly one of the attempt, the outcome and the error is not nil: the adapter
// must run and end the attempt; the outcome is a replay.
func Begin(ctx context.Context, e semel.Runner, c semel.Call) (*Attempt, *Outcome, error) {
	return engine.Begin(ctx, e, c)
}

// Outcome is how an operation ended. Every caller of its key receives the same
// outcome.
type Outcome = engine.Outcome

// Adapter lets an edge, such as HTTP, decide what [semel.InTx] stores.
type Adapter = engine.Adapter
