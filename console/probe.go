package console

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/recordview"
	"github.com/semelgo/semel/store"
)

// probeTimeout limits the call of a probe.
const probeTimeout = 5 * time.Second

// probeState is what is known about the probe of a record.
type probeState struct {
	Wanted   bool   // the record is unfinished, so evidence could complete it
	Known    bool   // the engine was given the operation
	Policy   string // of the operation
	HasProbe bool
}

// probeOf returns whether a probe can be called for r.
func probeOf(e semel.Runner, r *store.Record) probeState {
	p, known := admin.PolicyOf(e, r.Operation)
	return probeState{Wanted: r.State == store.InDoubt || r.State == store.InProgress, Known: known, Policy: p.String(), HasProbe: p.HasProbe()}
}

// evidence is what a probe has found.
type evidence struct {
	Found    bool
	Revealed bool               // the actor may see the result, or the error
	Outcome  recordview.Outcome // if it was found
	Result   string
	Problem  string // why the probe says nothing
	Error    string // of the probe
}

// callProbe calls the probe of a record's operation. Nothing is written.
func callProbe(ctx context.Context, e semel.Runner, id store.ID, show bool) *evidence {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, found, err := admin.Probe(ctx, e, id)
	v := &evidence{Found: found, Revealed: show}
	switch {
	case errors.Is(err, admin.ErrNoProbe):
		v.Problem = "There is no probe to call."
	case errors.Is(err, admin.ErrNotInDoubt):
		v.Problem = "The record is neither in doubt nor running any more."
	case errors.Is(err, semel.ErrUnavailable):
		v.Problem = "The store does not answer."
	case errors.Is(err, context.DeadlineExceeded):
		v.Problem = "The probe has not answered within " + probeTimeout.String() + "."
	case err != nil:
		v.Problem = "The probe has failed."
		if show {
			v.Error = err.Error()
		}
	case found:
		v.Outcome = recordview.OutcomeOf(&r, show)
		v.Result = revealed(&v.Outcome)
	}
	return v
}
