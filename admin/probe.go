package admin

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// PolicyOf returns the policy of an operation, and whether the engine was given an
// operation of that name.
func PolicyOf(e semel.Runner, operation string) (semel.Policy, bool) {
	return engine.PolicyOf(engine.CoreOf(e), operation)
}

// Probe calls the probe of the record's operation, of the policy Heal or Fenced, and
// writes nothing. If the probe finds the effect, Probe returns true and the record as that
// evidence would complete it: Succeeded, with the result. Otherwise it returns the current
// record; that nothing was found proves nothing.
//
// The error is [ErrNoProbe] if the engine was not given the operation or its policy has no
// probe, [ErrNotInDoubt] if the record is neither in doubt nor running, [semel.ErrUnavailable]
// if the store does not answer, or else wraps that of the probe. The probe ends with ctx, if it obeys it.
func Probe(ctx context.Context, e semel.Runner, id store.ID) (r store.Record, found bool, err error) {
	return engine.CallProbe(ctx, engine.CoreOf(e), id)
}
