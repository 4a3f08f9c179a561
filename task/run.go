package task

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/semelgo/semel"
)

// PanicError is what the Observer is told of a function that panicked, and what the
// history of its task says.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where, as runtime/debug.Stack gives it
}

// Error says what the function panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// run is an attempt on its way through the worker.
type run struct {
	kind       *kind
	batch      *batch
	attempt    *semel.Attempt
	completion semel.Completion // once its function has succeeded
}

// runTask runs the function of an attempt and has it ended. How that went the engine
// tells its Observer; nobody else waits for it.
func (p *untypedWorker) runTask(r *run) {
	succeeded := false
	defer func() {
		if !succeeded {
			p.freeSlots(r)
		}
	}()
	var v any
	if v, succeeded = r.execute(); succeeded {
		p.completer.add(r, v)
	}
}

// execute runs the function. Unless that has succeeded, the attempt has ended then.
func (r *run) execute() (v any, succeeded bool) {
	a, k := r.attempt, r.kind
	defer abandon(a, &succeeded)
	if out, err := a.Prepare(); out != nil || err != nil {
		return nil, false
	}
	ctx := a.Context()
	if k.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.timeout)
		defer cancel()
	}
	v, err := k.run(ctx, a)
	if err != nil || k.inTx {
		_, _ = a.End(v, err)
		return nil, false
	}
	return v, true
}

// abandon ends an attempt whose function did not return. Of one that has ended it
// changes nothing, and one that succeeded is ended by others.
func abandon(a *semel.Attempt, succeeded *bool) {
	if *succeeded {
		return
	}
	if v := recover(); v != nil {
		a.AbandonWith(&PanicError{Value: v, Stack: debug.Stack()})
		return
	}
	a.Abandon()
}

// encodeResult is v as it will be kept, so that what a type of the handler's does when it
// is written happens in its own attempt, and not while it ends with others. What
// cannot be written stays as it is: the engine knows what to keep of it.
func encodeResult(v any) any {
	switch v.(type) {
	case semel.Raw, semel.Tombstone:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	return json.RawMessage(text)
}
