package engine

import "github.com/semelgo/semel/internal/callerr"

// CheckOperation returns why every call of op over this engine would be refused, as a
// *FieldError, or nil.
func CheckOperation(c *Core, op Declared) error {
	d := op.declared()
	if d.err != nil {
		return d.err
	}
	return c.checkOperation(d)
}

// CheckWorker returns why workers of this engine cannot run op, as a *FieldError,
// or nil.
func CheckWorker(c *Core, op Declared, inTx bool) error {
	d := op.declared()
	if err := CheckOperation(c, op); err != nil {
		return err
	}
	switch {
	case c.operations[d.name] == nil:
		return callerr.Invalid("Operations", "of the engine are without "+d.name)
	case d.retry == nil:
		return callerr.Invalid("Retry", "is not set for "+d.name+": callers own its keys and retry themselves")
	case d.retry.Redelivered:
		return callerr.Invalid("Redelivered", "is set for "+d.name+": a broker redelivers its calls, and no worker runs them")
	case inTx && !d.policy.kind.Transactional():
		return callerr.Invalid("Policy", "of "+d.name+" must be Atomic: its functions share the record's transaction")
	}
	return nil
}
