package semelhttp

import (
	"context"
	"errors"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// endpoint returns where the request was sent, in profiles that distinguish a key
// used at another endpoint from one used with other parameters.
func (x *exchange) endpoint() string {
	if !x.s.endpoints {
		return ""
	}
	path, _ := target(x.r)
	return x.r.Method + " " + path
}

// otherEndpoint says, for a key that was used for another request, whether that was
// at another endpoint. This is known only if that request has a stored response;
// every other error is returned unchanged.
func (x *exchange) otherEndpoint(err error) error {
	if !x.s.endpoints || !errors.Is(err, semel.ErrMismatch) {
		return err
	}
	record, found, gerr := x.get(x.r.Context(), x.op.Name(), x.in.scope, x.in.key)
	if gerr != nil || !found {
		return err
	}
	stored, perr := ParseResponse(responseIn(&semel.Outcome{Record: record}))
	if perr != nil || stored.endpoint == "" || stored.endpoint == x.endpoint() {
		return err
	}
	p := problem(codeKeyReused, "")
	p.Field = fieldEndpoint
	return p
}

// responseIn returns the response that is stored in an outcome, or nil.
func responseIn(out *semel.Outcome) semel.Raw {
	var raw semel.Raw
	if failure := out.Failure(); failure != nil {
		return detailsOf(failure).Response
	}
	if out.Decode(&raw) != nil {
		return nil
	}
	return raw
}

// getFunc reads the record of a key.
type getFunc func(ctx context.Context, operation string, scope semel.Scope, key string) (store.Record, bool, error)

// getterOf returns how e reads records.
func getterOf(e semel.Runner) getFunc {
	if g, ok := e.(interface {
		Get(ctx context.Context, operation string, scope semel.Scope, key string) (store.Record, bool, error)
	}); ok {
		return g.Get
	}
	return nil // not reachable: only engines are Runners
}
