package task

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// PanicError is the error of a function that panicked. The Observer receives
// it, and the history of the task keeps its text.
type PanicError struct {
	Value any    // the value that the function panicked with
	Stack []byte // the stack at the panic, as runtime/debug.Stack formats it
}

// Error returns "panic: " and the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// run is an attempt that the worker is processing.
type run struct {
	kind       *kind
	batch      *batch
	attempt    *semel.Attempt
	completion adapter.Completion // set when the function has succeeded
}

// runTask runs the function of an attempt and ends the attempt. The engine
// reports the result to its Observer; no other code waits for it.
func (w *Worker) runTask(r *run) {
	succeeded := false
	defer func() {
		if !succeeded {
			w.freeSlots(r)
		}
	}()
	var v any
	if v, succeeded = r.execute(); succeeded {
		w.completer.add(r, v)
	}
}

// execute runs the function. If it returns false, the attempt has ended
// already; if it returns true, the completer must complete it with v.
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

// abandon ends an attempt whose function did not return, because of a panic or
// runtime.Goexit. It does nothing if the attempt has ended or has succeeded.
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

// encodeResult encodes v as JSON now, so that a MarshalJSON method of the
// handler's type runs, and possibly panics, within its own attempt and not
// within a batch with others. A value that cannot be encoded is returned
// unchanged; the engine decides what to store for it.
func encodeResult(v any) any {
	switch v.(type) {
	case semel.Raw, adapter.Tombstone:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	return json.RawMessage(text)
}
