package engine

import "github.com/semelgo/semel/internal/callerr"

// Prepare must be called before the function of an attempt of [Dequeue]. It
// ends an attempt whose operation has crashed too often or whose key was cancelled,
// and under [Fenced] raises the fence and looks the effect up. If it returns an
// outcome or an error, the attempt has ended and its function must not run. [Begin] calls
// it, too.
func (a *Attempt) Prepare() (*Outcome, error) {
	if err := a.call.op.exhausted(a.found, a.token.Attempt); err != nil {
		return a.End(nil, err)
	}
	if why := a.cancelled(); why != nil {
		return a.End(nil, callerr.NotCommitted(why))
	}
	return a.fence()
}

// fence implements policy Fenced for an attempt that follows one with an unknown
// effect: it raises the fence, then looks the effect up. It returns nothing if the
// attempt may run.
func (a *Attempt) fence() (*Outcome, error) {
	if !a.policy.Raises() || a.found == nil || !a.found.Tainted {
		return nil, nil
	}
	acts := false
	defer func() {
		if !acts { // also on a panic in the operation's functions
			a.Abandon()
		}
	}()
	p := a.call.op.policy
	if err := p.raise(a.ctx, a.call.scope, a.call.key, a.token.Attempt); err != nil {
		return a.End(nil, &callerr.FenceError{Err: err})
	}
	result, found, err := p.probe(a.ctx, a.call.scope, a.call.key)
	if err != nil {
		return a.End(nil, &callerr.FenceError{Err: err})
	}
	if !found {
		acts = true
		return nil, nil
	}
	out, err := a.End(result, nil)
	if out != nil {
		out.Replayed = true
	}
	return out, err
}
