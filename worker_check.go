package semel

// CheckWorker returns what keeps workers of this engine from running the waiting
// calls of op, as a *FieldError, or nil. Their operations have [Retry] and are
// among those that the engine was given: nobody would free what a worker leaves
// that died. inTx says that their functions run in the transaction of [InTx],
// which takes policy [Atomic].
func (c *Core) CheckWorker(op Declared, inTx bool) error {
	d := op.declared()
	given := c.operationNamed(d.name)
	switch {
	case d.err != nil:
		return d.err
	case given == nil:
		return invalid("Operations", "of the engine are without "+d.name)
	case given != d:
		return invalid("Operations", "of the engine have another definition of "+d.name)
	case d.retry == nil:
		return invalid("Retry", "is not set for "+d.name+": its keys are their callers', and nobody but them tries again")
	case d.retry.Redelivered:
		return invalid("Redelivered", "is set for "+d.name+": its calls come back by themselves, without a worker")
	case inTx && d.policy.kind != policyAtomic:
		return invalid("Policy", "of "+d.name+" must be Atomic: its functions share the record's transaction")
	}
	return c.options.outlived(d)
}

// abandonedError is the error of a function that did not return.
type abandonedError struct{ why error }

func (e *abandonedError) Error() string        { return errAbandoned.Error() + ": " + e.why.Error() }
func (e *abandonedError) Unwrap() error        { return e.why }
func (e *abandonedError) Is(target error) bool { return target == errAbandoned }

// AbandonWith is [Attempt.Abandon] by one who knows why the function did not
// return. why is kept in the record's [Progress] and told to the Observer; however
// it is marked, it is no evidence.
func (a *Attempt) AbandonWith(why error) {
	if !a.ended.Load() {
		_, _ = a.End(nil, &abandonedError{why})
	}
}
