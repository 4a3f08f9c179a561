package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

var errLater = errors.New("another error")

// TestRecordInDoubtKeepsItsErrors: an operator reads why a record is in doubt, also if an
// attempt with an unknown effect preceded a final error.
func TestRecordInDoubtKeepsItsErrors(t *testing.T) {
	type row struct {
		policy semel.Policy
		errs   []error
	}
	eachInBubble(t, map[string]row{
		"an unknown effect":        {semel.Hold(), []error{errBoom}},
		"after a released attempt": {semel.Hold(), []error{semel.NotCommitted(errLater), errBoom}},
		"a final error after it":   {semel.AtLeastOnce(), []error{errBoom, semel.Final(semel.NotCommitted(errLater))}},
	}, func(t *testing.T, c row) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: c.policy})
		for _, err := range c.errs {
			do(t.Context(), p, call, func(context.Context) (string, error) { return "", err })
		}
		r, _, err := admin.Get(t.Context(), p, "op", me, "k")
		check.Require(t, err)
		check.Equal(t, r.State, store.InDoubt, "state")
		progress, _ := admin.ProgressOf(r)
		check.Equal(t, len(progress.Tries), len(c.errs), "errors")
		for i, try := range progress.Tries {
			check.Equal(t, try, admin.Try{Attempt: uint32(i + 1), Kind: admin.TryError, Error: c.errs[i].Error()}, "attempt %d", i+1)
		}
	})
}
