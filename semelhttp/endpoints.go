package semelhttp

import (
	"context"
	"errors"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// endpoint is where x's request was sent, in profiles that tell a key used at
// another endpoint from one used with other parameters.
func (x *exchange) endpoint() string {
	if !x.s.endpoints {
		return ""
	}
	return x.r.Method + " " + x.r.URL.EscapedPath()
}

// elsewhere says of a key that was used for another request whether that was at
// another endpoint. It is known only where the answer of that request is a
// stored result; everything else is left as it is.
func (x *exchange) elsewhere(err error) error {
	if !x.s.endpoints || !errors.Is(err, semel.ErrMismatch) {
		return err
	}
	record, found, gerr := x.get(x.r.Context(), x.call.Operation(), x.call.Scope(), x.call.Key())
	if gerr != nil || !found || record.State != store.Succeeded {
		return err
	}
	var raw semel.Raw
	if (&semel.Outcome{Record: record}).Decode(&raw) != nil {
		return err
	}
	stored, perr := ParseResponse(raw)
	if perr != nil || stored.endpoint == "" || stored.endpoint == x.endpoint() {
		return err
	}
	p := problem(codeKeyReused, "")
	p.Field = fieldEndpoint
	return p
}

// getFunc reads the record of a key, as every engine does.
type getFunc func(ctx context.Context, operation string, scope semel.Scope, key string) (store.Record, bool, error)

// getterOf returns how e reads records.
func getterOf(e semel.Runner) getFunc {
	if g, ok := e.(interface {
		Get(ctx context.Context, operation string, scope semel.Scope, key string) (store.Record, bool, error)
	}); ok {
		return g.Get
	}
	return nil // not reachable: engines alone are Runners
}
