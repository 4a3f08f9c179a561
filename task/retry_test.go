package task_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// runFailing runs one task with the function fn, for long enough to use up all
// its attempts.
func runFailing(t *testing.T, o semel.OperationOptions[input], fn func(ctx context.Context) (int, error)) (*rig, semel.Call, []uint32) {
	t.Helper()
	op := semel.Define("op", o)
	r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
	var ran syncList[uint32]
	handle(r, op, func(ctx context.Context, _ input) (int, error) {
		a, _ := semel.AttemptOf(ctx)
		ran.add(a.Number())
		return fn(ctx)
	})
	call := op.Call(me, "k", input{})
	r.enqueue(call)
	defer r.start()()
	sleep(time.Hour)
	return r, call, ran.all()
}

// history returns the progress that a dead letter keeps.
func (r *rig) history(c semel.Call, code string) admin.Progress {
	r.t.Helper()
	out := adapter.Outcome{Record: r.wantState(c, store.Failed)}
	f := out.Failure()
	if f == nil || f.Code != code {
		r.t.Fatalf("the failure is %+v, want the code %q", f, code)
	}
	var p admin.Progress
	if err := json.Unmarshal(f.Details, &p); err != nil {
		r.t.Errorf("the details %s: %v", f.Details, err)
	}
	return p
}

// TestFunctionWithoutReturn: a panic or runtime.Goexit counts as an error, the
// Observer receives an event, and the worker continues.
func TestFunctionWithoutReturn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fn   func()
		text string
	}{
		"panic":     {func() { panic("on purpose") }, "panic: on purpose"},
		"panic nil": {func() { panic(nil) }, "panic called with nil argument"},
		"goexit":    {runtime.Goexit, "the function did not return"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := leasedOptions(semel.AtLeastOnce())
				o.Retry.MaxErrors = 2
				r, call, ran := runFailing(t, o, func(context.Context) (int, error) {
					tt.fn()
					return 0, nil
				})
				if len(ran) != 2 {
					t.Errorf("attempts %v ran, want two", ran)
				}
				r.wantState(call, store.InDoubt) // the verdict is Unknown
				p := r.progress(call)
				if p.Errors != 2 || p.Tries[1].Kind != admin.TryError || !strings.Contains(p.Tries[1].Error, tt.text) {
					t.Errorf("the history is %+v, want two errors with %q", p, tt.text)
				}
				r.wantEvent(event.Released, tt.text)
				if panicked, ok := errtype.Find[*task.PanicError](r.seen.of(event.Released)[0].Err); ok != (name != "goexit") || ok && len(panicked.Stack) == 0 {
					t.Errorf("got %v, want a *PanicError with its stack", r.seen.of(event.Released)[0].Err)
				}
			})
		})
	}
}

// wantEvent fails the test unless an event of the kind has an error with the
// text.
func (r *rig) wantEvent(kind event.Kind, says string) {
	r.t.Helper()
	for _, e := range r.seen.of(kind) {
		if e.Err != nil && strings.Contains(e.Err.Error(), says) {
			return
		}
	}
	r.t.Errorf("events %+v, want one with the text %q", r.seen.of(kind), says)
}

// panickingResult panics when it is encoded.
type panickingResult struct{}

func (panickingResult) MarshalJSON() ([]byte, error) { panic("cannot be encoded") }

// TestResultThatPanicsWhileEncoded: the panic ends its own attempt only.
func TestResultThatPanicsWhileEncoded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad := semel.Define("bad", leasedOptions(semel.Hold()))
		good := semel.Define("good", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, bad, good)
		handle(r, bad, func(context.Context, input) (panickingResult, error) { return panickingResult{}, nil })
		handle(r, good, func(context.Context, input) (int, error) { return 1, nil })
		badCall, goodCall := bad.Call(me, "k", input{}), good.Call(me, "k", input{})
		r.enqueue(badCall)
		r.enqueue(goodCall)
		defer r.start()()
		sleep(time.Minute)
		r.wantState(goodCall, store.Succeeded)
		r.wantState(badCall, store.InDoubt)
		r.wantEvent(event.InDoubt, "cannot be encoded")
	})
}

// TestUndecodableInput is an error of the attempt, and the function is never run. It proves
// nothing about an earlier attempt that crashed, because the receiver of that attempt was not
// asked.
func TestUndecodableInput(t *testing.T) {
	t.Parallel()
	for name, crashed := range map[string]bool{"in the first attempt": false, "after a crash": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := leasedOptions(semel.Keyed())
				o.Retry.MaxErrors = 2
				op := semel.Define("op", o)
				r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
				handle(r, op, func(context.Context, input) (int, error) {
					t.Error("the function ran, want no run")
					return 0, nil
				})
				call := enqueueOtherVersion(r, "k", "not an object")
				if crashed {
					r.crash(call)
					r.sweepAfterCrash()
				}
				defer r.start()()
				sleep(time.Hour)
				if crashed {
					r.wantState(call, store.InDoubt)
				} else if p := r.history(call, "exhausted"); p.Errors != 2 || !strings.Contains(p.Tries[0].Error, "input") {
					t.Errorf("the history is %+v, want two errors about the input", p)
				}
			})
		})
	}
}
